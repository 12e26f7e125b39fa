/* The bins of a histogram: where they begin.
 *
 *     edge 0     edge 1     edge 2           edge n
 *       |  bin 0   |  bin 1   |  ...  bin n-1  |     a bin has its lower edge, the last one both
 *
 * Bins are equally wide, to the nearest number that the elements can be: a bin of integers begins
 * at an integer, since x < 2.5 and x < 3 say the same of them. A range with fewer numbers in it
 * than bins has a bin for each, the last of which begins and ends at the greatest. Nothing here
 * overflows or is rounded to another number: the range of int64 has 2^64 integers, that of double
 * is wider than any double.
 */
#include "client/ctl/show.h"

#include <math.h>
#include <string.h>

/* Doubles in their order: neighbours are one apart. */
static int64_t place_of(double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits < 0 ? INT64_MIN - bits : bits;
}

static uint64_t bits_of(const struct gad_scalar *integer)
{
    return integer->kind == GAD_SCALAR_UINT ? integer->uint_value : (uint64_t)integer->int_value;
}

/* A number that is `offset` more. */
static struct gad_scalar above(const struct gad_scalar *least, uint64_t offset)
{
    struct gad_scalar number = *least;
    if (least->kind == GAD_SCALAR_UINT)
        number.uint_value += offset;
    else
        number.int_value = (int64_t)((uint64_t)least->int_value + offset);
    return number;
}

/* span * i / SHOW_MAX_BINS, rounded up. */
static uint64_t part_of(uint64_t span, unsigned i)
{
    uint64_t whole = span / SHOW_MAX_BINS * i, rest = span % SHOW_MAX_BINS * i;
    return whole + (rest + SHOW_MAX_BINS - 1) / SHOW_MAX_BINS;
}

static struct gad_scalar integer_edge(const struct show_bins *bins, uint64_t span, unsigned i)
{
    bool is_each = span < SHOW_MAX_BINS;
    return above(&bins->edges[0], is_each ? i : part_of(span, i));
}

/* A half of the range is no more than the greatest double. */
static struct gad_scalar float_edge(const struct show_bins *bins, double greatest, unsigned i)
{
    double least = bins->edges[0].float_value, half = isinf(greatest - least) ? 0.5 : 1;
    double width = greatest * half - least * half;
    double edge = (least * half + width * ((double)i / SHOW_MAX_BINS)) / half;
    return (struct gad_scalar){.kind = GAD_SCALAR_FLOAT, .float_value = edge};
}

static struct gad_scalar next_double(const struct gad_scalar *edge)
{
    return (struct gad_scalar){.kind = GAD_SCALAR_FLOAT,
                               .float_value = nextafter(edge->float_value, INFINITY)};
}

void show_bins_init(struct show_bins *bins, const struct gad_scalar *least,
                    const struct gad_scalar *greatest)
{
    bool is_float = least->kind == GAD_SCALAR_FLOAT;
    uint64_t span = is_float ? (uint64_t)place_of(greatest->float_value) -
                                   (uint64_t)place_of(least->float_value)
                             : bits_of(greatest) - bits_of(least);
    *bins = (struct show_bins){.n = 1, .edges = {*least}};
    unsigned n = span < SHOW_MAX_BINS ? (unsigned)span + 1 : SHOW_MAX_BINS;
    for (unsigned i = 1; i < n; i++) {
        struct gad_scalar *last = &bins->edges[bins->n - 1], edge;
        if (!is_float)
            edge = integer_edge(bins, span, i);
        else if (n <= span)
            edge = float_edge(bins, greatest->float_value, i);
        else
            edge = next_double(last);
        if (!is_float || edge.float_value > last->float_value)
            bins->edges[bins->n++] = edge;
    }
    bins->edges[bins->n] = *greatest;
}
