/* What the colours of a picture stand for. Pure. */
#pragma once

#include "client/gpuarrayd.h"

struct scale {
    double least, greatest; /* finite ones of what is shown; NaN: there are none */
    bool has_nothing;       /* there is NaN */
};

struct scale scale_of(const struct gad_picture *picture);
/* A number's place: 0 to 1; NaN of NaN. */
double scale_place(const struct scale *scale, double value);
