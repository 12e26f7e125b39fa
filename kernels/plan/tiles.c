/* Tiles: how many grains of a pass make one. The size never changes results.
 *
 * For the CPU's engine a tile is about TARGET_BYTES of traffic, less where arithmetic is heavy, and
 * small enough that every thread gets MIN_TILES_PER_THREAD of them.
 *
 * For a device a tile is what passes the link in one piece: as many grains as fit a slot with all
 * of their operands. The more, the better the link is used; but copies there, kernels and copies
 * back overlap only where there are several tiles, so a pass is cut into MIN_DEVICE_TILES unless
 * they would be of less than MIN_DEVICE_BYTES, of which a link takes about as long as it takes to
 * begin.
 *
 * A provider's blocks come one by one into few slots: with several grains a tile, few tiles would
 * hold all of them.
 *
 * Called by plan.c.
 */
#include "kernels/cuda/tile.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#define TARGET_BYTES         (2u * 1024 * 1024)
#define MAX_WORK             (UINT64_C(1) << 24) /* elements x instructions: some 20 ms */
#define MIN_TILES_PER_THREAD 4
#define MIN_DEVICE_TILES     8
#define MIN_DEVICE_BYTES     (1024u * 1024)

static uint64_t ceil_shift(uint64_t value, unsigned shift)
{
    return (value >> shift) + ((value & ((UINT64_C(1) << shift) - 1)) != 0);
}

/* The largest box that an operand has in a grain. */
static uint64_t box_bytes(const struct geometry *g, const struct geometry_operand *operand)
{
    uint64_t n_bytes = dtype_size(operand->dtype); /* a grain has at most 2^18 elements */
    for (int i = 0; i < operand->ndim; i++) {
        int64_t count = g->grain_shape[g->ndim - operand->ndim + i];
        n_bytes *= (uint64_t)(operand->shape[i] < count ? operand->shape[i] : count);
    }
    return round_up_u64(n_bytes, CUDA_TILE_ALIGN);
}

static void measure_grain(const struct planner *p, struct plan_pass *planned)
{
    for (unsigned i = 0; i < p->n_operands; i++) {
        const struct geometry_operand *operand = &p->operands[i].shape;
        uint64_t n_bytes = box_bytes(&planned->geometry, operand);
        if (operand->is_output)
            planned->grain_output_bytes += n_bytes;
        else
            planned->grain_input_bytes += n_bytes;
    }
}

static unsigned device_tile_log2(const struct planner *p, unsigned index)
{
    const struct plan_pass *planned = &p->plan->passes[index];
    uint64_t in = planned->grain_input_bytes, out = planned->grain_output_bytes;
    uint64_t n_grains = planned->geometry.n_grains;
    unsigned k = 0;
    while (
        ceil_shift(n_grains, k) > 1 && (UINT64_C(2) << k) <= CUDA_TILE_MAX_GRAINS &&
        cuda_tile_need_bytes(p->program, index, UINT64_C(2) << k, in, out) <=
            p->limits->slot_bytes &&
        (((in + out) << k) < MIN_DEVICE_BYTES || ceil_shift(n_grains, k + 1) >= MIN_DEVICE_TILES))
        k++;
    return k;
}

static unsigned cpu_tile_log2(const struct planner *p, unsigned index)
{
    const struct plan_pass *planned = &p->plan->passes[index];
    const struct geometry *g = &planned->geometry;
    unsigned n_threads = p->limits->n_threads > 0 ? p->limits->n_threads : 1, k = 0;
    uint64_t n_wanted = (uint64_t)MIN_TILES_PER_THREAD * n_threads;
    uint64_t bytes = (planned->read_bytes + planned->write_bytes) / g->n_grains;
    uint64_t work = planner_work_per_element(&p->program->passes[index]);

    for (int i = 0; i < g->ndim; i++)
        work *= (uint64_t)g->grain_shape[i]; /* a grain has at most 2^18 elements */
    while ((bytes << (k + 1)) <= TARGET_BYTES && (work << (k + 1)) <= MAX_WORK &&
           ceil_shift(g->n_grains, k + 1) >= n_wanted)
        k++;
    return k;
}

void planner_choose_tiles(const struct planner *p, unsigned pass, bool has_provider)
{
    struct plan_pass *planned = &p->plan->passes[pass];

    planned->n_tiles = planned->geometry.n_grains;
    if (planned->n_tiles == 0)
        return;
    if (p->limits->is_device)
        measure_grain(p, planned);
    if (!has_provider)
        planned->tile_log2 =
            p->limits->is_device ? device_tile_log2(p, pass) : cpu_tile_log2(p, pass);
    planned->n_tiles = ceil_shift(planned->n_tiles, planned->tile_log2);
}
