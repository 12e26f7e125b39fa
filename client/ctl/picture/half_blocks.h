/* Pictures in a terminal: two pixels a character, one above the other. */
#pragma once

#include "client/ctl/picture/preview.h"

enum half_blocks_kind {
    HALF_BLOCKS_ASCII, /* characters that grow darker: no UTF-8, NO_COLOR, a dumb terminal */
    HALF_BLOCKS_256,   /* colours */
    HALF_BLOCKS_TRUE,  /* all colours */
};

struct half_blocks_terminal {
    enum half_blocks_kind kind;
    unsigned n_columns, n_lines;
};

/* The terminal at standard output, or what stands for one. */
struct half_blocks_terminal half_blocks_terminal(void);
/* How many cells a preview may have there. */
void half_blocks_limits(const struct half_blocks_terminal *terminal, bool is_line,
                        struct preview_options *ret);
/* The picture, and its scale below, with its units; no other texts. */
void half_blocks_draw(FILE *file, const struct half_blocks_terminal *terminal,
                      const struct gad_picture *picture);
