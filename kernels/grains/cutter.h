/* What the parts of geometry_init() share: the space, its operands, the extents so far. */
#pragma once

#include "kernels/grains/geometry.h"
#include "proto/request.h"
#include "proto/util.h"

#define CUTTER_MAX_OPERANDS (REQUEST_MAX_ARGS + REQUEST_MAX_OUTPUTS + 288)
#define CUTTER_MAX_ELEMENTS ((int64_t)GRAIN_MAX_OPERAND_BYTES)
#define CUTTER_MIN_ALIGN    16
#define CUTTER_RUN_BYTES    1024 /* a run of a useful length */
#define BROADCAST_STRIDE    0

struct cutter {
    struct geometry *g; /* g->grain_shape: the extents so far */
    const struct geometry_rules *rules;
    unsigned n_operands;
    const struct geometry_operand *operands;
    int64_t unit[ARRAY_MAX_NDIM]; /* extents are multiples of it, or the whole axis */
    uint32_t divided_axes;        /* along which a chunk is in parts, which are to be neighbours */
    bool has_long_runs;           /* one operand alone may fill rules->long_bytes */
};

static inline bool cutter_is_reduced(const struct cutter *c, int axis)
{
    return c->rules->reduced_axes >> axis & 1;
}

/* order.c: in which order axes are walked. --------------------------------------------------- */

/* Whether the operand has this axis of the space, and it is no broadcast one. */
bool cutter_has_axis(const struct geometry *g, const struct geometry_operand *operand, int axis);
/* How long an operand's runs of neighbouring bytes are in a grain, and along which axis growth
 * would make them longer (-1: it is whole). */
int64_t cutter_run_bytes(const struct cutter *c, const struct geometry_operand *operand,
                         int *ret_axis);
void cutter_choose_order(struct cutter *c);
/* Whether some operand is slower along an axis that is walked faster. */
bool cutter_has_contrary_layout(const struct cutter *c);

/* fit.c: what fits a grain. ------------------------------------------------------------------ */

/* Whether the current extents fit when `axis` had this one (axis -1: as they are). */
bool cutter_fits(const struct cutter *c, int axis, int64_t extent);
/* The largest extent up to `limit` that fits and keeps to the units; at least the current one. */
int64_t cutter_largest_extent(const struct cutter *c, int axis, int64_t limit);
/* The extent of the axis that is split into nearly equal parts of `length`, none larger than
 * `extent`, in whole units or pages where that costs little. */
int64_t cutter_even_out(const struct cutter *c, int axis, int64_t length, int64_t extent);
/* The largest divisor of a chunk's length between a quarter of `extent` and `extent`, or extent. */
int64_t cutter_near_divisor(int64_t chunk, int64_t extent);

/* units.c: chunks. --------------------------------------------------------------------------- */

/* Units and the first extents: ones, or chunks. False: the extents are final, a part of a chunk
 * that is as large as fits. */
bool cutter_set_units(struct cutter *c);

/* kept.c: spaces of which some axes are reduced. ---------------------------------------------- */

/* Divides a chunk so that a part fits a grain, and its kept elements a node. */
void cutter_divide_reducing(struct cutter *c);
void cutter_fill_reducing(struct cutter *c);
/* The extents along kept axes become such that a node has at most rules->max_cells. */
void cutter_limit_cells(struct cutter *c);
