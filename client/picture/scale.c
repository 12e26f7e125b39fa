/* From the least to the greatest number that is shown; infinities are beyond. Called by figure.c
 * and half_blocks.c.
 */
#include "client/picture/scale.h"

#include <math.h>

struct scale scale_of(const struct gad_picture *p)
{
    const double *lows = p->is_line ? p->lows : p->means, *highs = p->is_line ? p->highs : p->means;
    struct scale s = {.least = NAN, .greatest = NAN};
    for (size_t i = 0; i < (size_t)p->n_rows * p->n_columns; i++) {
        s.has_nothing |= isnan(p->means[i]);
        if (isfinite(lows[i]) && !(s.least <= lows[i]))
            s.least = lows[i];
        if (isfinite(highs[i]) && !(s.greatest >= highs[i]))
            s.greatest = highs[i];
    }
    if (isnan(s.least) || isnan(s.greatest)) /* of lines: one of them alone */
        s.least = s.greatest = fmin(s.least, s.greatest);
    return s;
}

double scale_place(const struct scale *s, double value)
{
    if (isnan(value))
        return NAN;
    if (isinf(value))
        return value > 0;
    double span = s->greatest / 2 - s->least / 2; /* of halves: a double may have no room for it */
    return span > 0 ? (value / 2 - s->least / 2) / span : 0.5;
}
