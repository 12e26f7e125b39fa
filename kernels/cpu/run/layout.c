/* The layout of the scratch, and the strips that are filled once.
 *
 * Scratch:  | struct run | insns | draws | reductions | inputs | indices | stores | address[] |
 * strips ...
 * |
 *
 * The strip's length is such that all that a strip touches fits the first-level cache, in powers of
 * two: whole pages of an input are read one after the other, which suits the memory. Registers (one
 * spare more) hold the widest item of the pass, inputs that are copied and uniform values hold
 * their own item. Where the scratch has no room for that, it decides. A static assertion shows that
 * the largest program still has strips of KERNEL_GRANULE elements. Inputs that repeat after few
 * elements are written out once, one period longer than a strip, so that a strip may begin anywhere
 * in the period. Called by bind.c.
 */
#include "kernels/cpu/run/bind.h"

#include "kernels/cpu/run/kth.h"
#include "kernels/cpu/run/qr_rows.h"
#include "proto/util.h"

#define STRIP_MAX   2048
#define STRIP_LEAST 512 /* for the sake of the cache; the scratch may have room for less */

#define MAX_UNIFORMS (PROGRAM_MAX_CONSTS + PASS_MAX_RESULTS)
#define MAX_SLOTS                                                                                  \
    (PROGRAM_MAX_REGISTERS + 1 + BIND_MAX_STREAMS + ARRAY_MAX_NDIM + 1 + MAX_UNIFORMS +            \
     PASS_MAX_RESULTS + PASS_MAX_STORES)

#define LARGEST_BOOKS                                                                              \
    (sizeof(struct run) +                                                                          \
     PROGRAM_MAX_INSNS * (sizeof(struct bound_insn) + 2 * sizeof(struct chain_step) + 2) + 128 +   \
     BIND_MAX_DRAWS * sizeof(struct bound_draw) +                                                  \
     PASS_MAX_REDUCTIONS * (sizeof(struct reducing) + KERNEL_GRANULE * sizeof(double)) +           \
     PASS_MAX_REDUCTIONS * (sizeof(struct scanning) + sizeof(struct counting) + 64) +              \
     PASS_MAX_RESULTS * 64 + BIND_MAX_STREAMS * (sizeof(struct stream) + sizeof(struct fetch)) +   \
     (ARRAY_MAX_NDIM + 2) * sizeof(struct index_stream) +                                          \
     PASS_MAX_STORES * sizeof(struct bound_store) + MAX_SLOTS * sizeof(void *) + 8 * 64 +          \
     PROGRAM_MAX_LOOPS * (sizeof(struct bound_loop) + sizeof(struct moved) + 64) +                 \
     4 * PROGRAM_MAX_INSNS * sizeof(struct moved))
#define LARGEST_STRIPS                                                                             \
    ((PROGRAM_MAX_REGISTERS + 1 + BIND_MAX_STREAMS + ARRAY_MAX_NDIM + 2 + MAX_UNIFORMS +           \
      PASS_MAX_REDUCTIONS + 1 + LOOP_MAX_MOVED + 1) *                                              \
         KERNEL_GRANULE * 8 +                                                                      \
     BIND_MAX_STREAMS * BIND_PERIOD_FEW * 8)
/* A pass with KTHs has no QR_Rs. */
#define LARGEST_KTHS (sizeof(struct kth) + ENGINE_MAX_KEY_BYTES + KTH_SOME_BYTES)
#define LARGEST_QRS  (BIND_MAX_QR_BYTES + PASS_MAX_REDUCTIONS * (sizeof(struct qr_rows) + 64))
_Static_assert(LARGEST_BOOKS + LARGEST_STRIPS + BIND_MAX_CELL_BYTES +
                       (LARGEST_KTHS > LARGEST_QRS ? LARGEST_KTHS : LARGEST_QRS) <=
                   CPU_SCRATCH_BYTES,
               "the largest program must fit the scratch");

void *layout_take(struct binding *b, size_t n_bytes)
{
    void *p = b->scratch + b->used_bytes;
    b->used_bytes += round_up_u64(n_bytes, 64);
    return p;
}

static size_t room_after(const struct stream *s)
{
    return s->kind == STREAM_PERIODIC ? round_up_u64((s->n_run - 1) << s->item_log2, 64) : 0;
}

/* Bytes of strips for one element; *ret_fixed: bytes besides. */
static size_t bytes_per_element(const struct binding *b, size_t *ret_fixed)
{
    const struct run *run = b->run;
    size_t n_bytes = (run->pass->n_registers + 1u) * b->register_bytes;
    n_bytes += (run->n_indices + (run->positions != NULL)) * sizeof(int64_t);
    n_bytes += (run->n_scans + (run->n_scans > 0)) * sizeof(int64_t);
    *ret_fixed = 0;
    for (unsigned i = 0; i < run->n_inputs; i++) {
        const struct stream *s = &run->inputs[i];
        if (s->kind == STREAM_LINEAR)
            *ret_fixed += (size_t)KERNEL_GRANULE << s->item_log2;
        else
            n_bytes += (size_t)1 << s->item_log2;
        *ret_fixed += room_after(s);
    }
    for (unsigned i = 0; i < run->program->n_consts; i++)
        if (b->const_slot[i] != NO_SLOT)
            n_bytes += dtype_size(run->program->consts[i].dtype);
    return n_bytes;
}

/* Bytes that are read or written in place for one element. */
static size_t bytes_in_place(const struct run *run)
{
    size_t n_bytes = 0;
    for (unsigned i = 0; i < run->n_inputs; i++)
        if (run->inputs[i].kind == STREAM_LINEAR)
            n_bytes += (size_t)1 << run->inputs[i].item_log2;
    for (unsigned i = 0; i < run->n_stores; i++)
        if (run->stores[i].is_direct && !run->stores[i].stream.bypasses_cache)
            n_bytes += (size_t)1 << run->stores[i].stream.item_log2;
    return n_bytes;
}

/* At most n elements, at whose end no row along which is reduced goes on, where that can be. */
static size_t whole_rows(const struct reducer *r, size_t n)
{
    if (!r->is_along_rows || r->row > n)
        return n;
    uint64_t whole = r->row;
    while (whole % KERNEL_GRANULE != 0)
        whole *= 2;
    return whole <= n ? n - n % whole : n;
}

void layout_choose_strip(struct binding *b)
{
    struct run *run = b->run;
    size_t n_fixed, n_each = bytes_per_element(b, &n_fixed);
    size_t n_fitting =
        (CPU_SCRATCH_BYTES - b->used_bytes - n_fixed) / (n_each + loop_bytes_per_element(b));
    size_t n_cached = cpu_first_cache_bytes() / (n_each + bytes_in_place(run)), n = STRIP_MAX;
    if (run->n_loops == 0 && run->n_insns > 1 && chains_are_all(run))
        n_cached = n; /* values are in registers */
    run->ends_with_rows = run->n_reductions + run->n_scans == 0;
    while (n > STRIP_LEAST && n > n_cached)
        n /= 2;
    n = min_u64(n, n_fitting) & ~(size_t)(KERNEL_GRANULE - 1);
    if (run->n_reductions)
        n = whole_rows(&run->reducer, n);
    run->n_strip = min_u64(n, round_up_u64(run->n_elements, KERNEL_GRANULE));
}

static void store_scalar(void *p, enum dtype dtype, const union scalar *value)
{
    switch (dtype) {
    case DTYPE_BOOL: *(uint8_t *)p = value->u64 != 0; break;
    case DTYPE_INT8:
    case DTYPE_UINT8: *(uint8_t *)p = (uint8_t)value->u64; break;
    case DTYPE_INT16:
    case DTYPE_UINT16: *(uint16_t *)p = (uint16_t)value->u64; break;
    case DTYPE_INT32:
    case DTYPE_UINT32: *(uint32_t *)p = (uint32_t)value->u64; break;
    case DTYPE_FLOAT32: *(float *)p = value->f32; break;
    default: *(uint64_t *)p = value->u64; break;
    }
}

static void fill_uniform(struct binding *b, uint16_t slot, enum dtype dtype,
                         const union scalar *value)
{
    size_t item_bytes = dtype_size(dtype), n_bytes = b->run->n_strip * item_bytes;
    void *strip = layout_take(b, n_bytes);
    store_scalar(strip, dtype, value);
    stream_repeat(strip, item_bytes, n_bytes);
    b->run->address[slot] = strip;
}

static void fill_input(struct binding *b, struct stream *s)
{
    struct run *run = b->run;
    size_t n = s->kind == STREAM_LINEAR ? KERNEL_GRANULE : run->n_strip;
    size_t n_bytes = (n << s->item_log2) + room_after(s);
    s->buffer = run->address[s->slot] = layout_take(b, n_bytes);
    if (s->kind != STREAM_PERIODIC)
        return;
    stream_load(s, run->box, 0, s->n_run, run->engine->move, s->buffer);
    stream_repeat(s->buffer, s->n_run << s->item_log2, n_bytes);
}

void layout_fill(struct binding *b)
{
    struct run *run = b->run;
    const struct program *program = run->program;
    for (unsigned i = 0; i <= run->pass->n_registers; i++)
        run->address[i] = layout_take(b, run->n_strip * b->register_bytes);
    for (unsigned i = 0; i < run->n_inputs; i++)
        fill_input(b, &run->inputs[i]);
    for (unsigned i = 0; i < run->n_indices; i++) {
        struct index_stream *s = &run->indices[i];
        s->buffer = run->address[s->slot] = layout_take(b, run->n_strip * sizeof(int64_t));
    }
    for (unsigned i = 0; i < run->n_scans; i++)
        run->scans[i].buffer = layout_take(b, run->n_strip * sizeof(int64_t));
    if (run->n_scans)
        run->cast_strip = layout_take(b, run->n_strip * sizeof(int64_t));
    if (run->positions)
        run->positions->buffer = layout_take(b, run->n_strip * sizeof(int64_t));
    for (unsigned i = 0; i < program->n_consts; i++)
        if (b->const_slot[i] != NO_SLOT)
            fill_uniform(b, b->const_slot[i], program->consts[i].dtype, &program->consts[i].value);
}
