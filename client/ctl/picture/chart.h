/* Charts of numbers over time, one below the other in one picture. */
#pragma once

#include "client/picture/axis.h"

#include <stdbool.h>
#include <stdio.h>

struct chart_curve {
    const char *name;
    const double *values; /* one for each time; NaN: there is none, the curve has a gap */
    bool is_filled, is_dashed;
};

struct chart {
    const char *title;
    enum axis_unit unit;
    const struct chart_curve *curves;
    unsigned n_curves;
};

struct chart_page {
    const char *title, *subtitle;
    const double *times; /* seconds, rising */
    size_t n_times;
    double first, last; /* what the axis of time has */
    double clock_s;     /* see axis_first_time() */
    const struct chart *charts;
    unsigned n_charts;
};

void chart_write_page(FILE *file, const struct chart_page *page);
