/* The verbs that move arrays into another layout, and the words of their options. */
#pragma once

#include "client/ctl/ctl.h"

#define MOVE_MAX_SOURCES 1024

enum move_kind {
    MOVE_TRANSPOSE,
    MOVE_CONCATENATE,
    MOVE_STACK,
    MOVE_FLIP,
    MOVE_ROLL,
    MOVE_TILE,
    MOVE_PAD,
    MOVE_DIFF,
    MOVE_TAKE,
};

struct move_pair { /* of the border of an axis */
    struct gad_scalar before, after;
};

struct move_options {
    enum move_kind kind;
    struct ctl_output out;
    unsigned n_sources;
    const char *sources[MOVE_MAX_SOURCES];
    bool has_axes;
    int n_axes, axes[GAD_MAX_NDIM];
    int axis, n;   /* n: times that differences are taken */
    int n_numbers; /* shifts or repeats */
    int64_t numbers[GAD_MAX_NDIM];
    enum gad_pad_mode mode;
    struct gad_take_options take;
    int n_widths, n_values;
    struct move_pair widths[GAD_MAX_NDIM], values[GAD_MAX_NDIM];
};

/* "2,0,1". False: it cannot be read, or has too many. */
bool move_read_numbers(const char *text, int *ret_n, int64_t *ret_numbers) GAD_MUST_CHECK;
bool move_read_axes(const char *text, int *ret_n, int *ret_axes) GAD_MUST_CHECK;
/* "1", "1:2", "1:2,0:0": before and after, the same where there is one number. is_whole: all are of
 * GAD_SCALAR_INT, "1e3" too; else GAD_SCALAR_NONE is an integer that does not fit 64 bits. */
bool move_read_pairs(const char *text, bool is_whole, int *ret_n,
                     struct move_pair *ret_pairs) GAD_MUST_CHECK;
/* "edge", "wrap"; false when it is none. */
bool move_read_mode(const char *text, enum gad_pad_mode *ret_mode) GAD_MUST_CHECK;
bool move_read_take_mode(const char *text, enum gad_take_mode *ret_mode) GAD_MUST_CHECK;
