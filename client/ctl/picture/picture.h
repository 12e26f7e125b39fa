/* A picture of an array, in a terminal or in files: of show, and of --show. */
#pragma once

#include "client/ctl/ctl.h"

enum picture_when { PICTURE_AUTO, PICTURE_ALWAYS, PICTURE_NEVER };

struct picture_options {
    enum picture_when when; /* in the terminal; auto: where standard output is one */
    enum gad_colours map;
    bool is_fast;
    const char *png_path, *svg_path; /* files instead; NULL: none */
};

enum {
    CTL_OPTION_PICTURE = 0x430,
    CTL_OPTION_FAST,
    CTL_OPTION_COLOURS,
    CTL_OPTION_PNG,
    CTL_OPTION_SVG,
};
/* ARGP_ERR_UNKNOWN: the key is none of them. */
error_t picture_parse(int key, char *arg, struct picture_options *options,
                      struct argp_state *state);

/* What the text and the picture begin with: name, format, dtype, shape, meaning. */
void picture_print_head(const char *source, const struct gad_array_info *info,
                        const struct gad_meaning *meaning, uint64_t n_elements);
/* Whether pictures go to files. */
bool picture_is_filed(const struct picture_options *options);
/* Whether show draws the array. */
bool picture_is_wanted(const struct picture_options *options, const struct gad_array_info *info);
/* info: as expressions see the array. */
int picture_draw(struct gad_client *client, const char *source, struct gad_array *array,
                 const struct gad_array_info *info, const struct picture_options *options,
                 struct gad_error *error);
