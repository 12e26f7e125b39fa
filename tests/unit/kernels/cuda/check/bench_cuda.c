/* Rates of expressions, reductions along axes and random numbers, of data that is already on the
 * device, beside the device's own copy.
 *
 * Slots as the worker's, and larger ones, are filled once; then a tile is launched on each in turn,
 * so many that no cache of the device holds them. The limit is cuda_copy_on_device() of the same
 * bytes (what the expression reads and writes together) in the same run: in one piece, and in
 * pieces as large as the tiles; the faster of the two counts. Times are the device's own (events);
 * medians of rounds. Grains of reductions are blocks as the planner cuts them for such arrays.
 *
 * And the floor of a small job: copy in, a kernel, copy out, from the host's call to the host's
 * seeing the end; with an empty kernel where one is linked, and with the interpreter's.
 */
#include "tests/unit/kernels/cuda/check/checkcuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS       9
#define MAX_MEMORY   ((uint64_t)2 << 30)
#define TARGET       0.70
#define FLOOR_ROUNDS 2000
#define FLOOR_ITEMS  1000

int bench_empty_launch(cuda_stream stream); /* empty.cu: a kernel that does nothing */

struct area { /* of the device, cut in slots */
    char *device, *pinned;
    uint64_t n_bytes, slot_bytes;
    unsigned n_slots;
};

struct expression {
    const char *name;
    unsigned n_inputs;
    void (*build)(struct built *b, enum dtype dtype);
    double target;     /* of the copy's rate; 0: none */
    bool has_no_store; /* of reductions: only nodes come back */
    uint32_t reduced_axes;
    int64_t columns; /* of a grain of two axes; 0: one axis */
};

static double median(double *values, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && values[j] < values[j - 1]; j--) {
            double v = values[j];
            values[j] = values[j - 1];
            values[j - 1] = v;
        }
    return values[n / 2];
}

static void build_one(struct built *b, enum dtype t, enum op op, unsigned n_inputs)
{
    struct operand x, y = {0};
    built_init(b);
    x = built_input(b, t);
    if (n_inputs > 1)
        y = built_input(b, t);
    built_store(b, built_insn(b, op, t, t, 0, x, y, (struct operand){0}));
}

static void build_sqrt(struct built *b, enum dtype t)
{
    build_one(b, t, OP_SQRT, 1);
}

static void build_add(struct built *b, enum dtype t)
{
    build_one(b, t, OP_ADD, 2);
}

static void build_sqrt_add(struct built *b, enum dtype t)
{
    struct operand none = {0};
    built_init(b);
    struct operand x = built_input(b, t), y = built_input(b, t);
    struct operand sum = built_insn(b, OP_ADD, t, t, 0, x, y, none);
    built_store(b, built_insn(b, OP_SQRT, t, t, 0, sum, none, none));
}

static void build_multiply_add(struct built *b, enum dtype t)
{
    struct operand none = {0};
    built_init(b);
    struct operand x = built_input(b, t), y = built_input(b, t), z = built_input(b, t);
    struct operand product = built_insn(b, OP_MULTIPLY, t, t, 0, x, y, none);
    built_store(b, built_insn(b, OP_ADD, t, t, 0, product, z, none));
}

static void build_mean_and_others(struct built *b, enum dtype t)
{
    built_init(b);
    struct operand x = built_input(b, t);
    built_reduction(b, OP_SUM, DTYPE_FLOAT64, x);
    built_reduction(b, OP_SQUARED_DEVIATIONS, DTYPE_FLOAT64, x);
    built_reduction(b, OP_MIN, t, x);
    built_reduction(b, OP_MAX, t, x);
}

static void build_sum(struct built *b, enum dtype t)
{
    built_init(b);
    built_reduction(b, OP_SUM, DTYPE_FLOAT64, built_input(b, t));
}

static void build_sum_of_squares(struct built *b, enum dtype t)
{
    struct operand none = {0};
    built_init(b);
    struct operand x = built_input(b, t);
    built_reduction(b, OP_SUM, DTYPE_FLOAT64, built_insn(b, OP_SQUARE, t, t, 0, x, none, none));
}

static void build_draw(struct built *b, enum dtype t, enum op op, uint64_t stream)
{
    struct operand none = {0}, flat = {OPERAND_INDEX, DTYPE_UINT64, OPERAND_INDEX_FLAT};
    bool is_narrow = t == DTYPE_FLOAT32;
    enum dtype bits = is_narrow ? DTYPE_UINT32 : DTYPE_UINT64;
    built_init(b);
    struct operand seed = built_const(b, DTYPE_UINT64, (union scalar){.u64 = 7});
    struct operand from = built_const(b, DTYPE_UINT64, (union scalar){.u64 = stream});
    struct operand drawn = built_insn(b, is_narrow ? OP_RANDOM_U32 : OP_RANDOM_U64, DTYPE_UINT64,
                                      bits, 0, flat, seed, from);
    built_store(b, built_insn(b, op, bits, t, 1, drawn, none, none));
}

static void build_uniform(struct built *b, enum dtype t)
{
    build_draw(b, t, OP_STANDARD_UNIFORM, RANDOM_STREAM_UNIFORM);
}

static void build_normal(struct built *b, enum dtype t)
{
    build_draw(b, t, OP_STANDARD_NORMAL, RANDOM_STREAM_NORMAL);
}

static const struct expression expressions[] = {
    {"sqrt(a)", 1, build_sqrt, TARGET, false, 0, 0},
    {"a + b", 2, build_add, TARGET, false, 0, 0},
    {"sqrt(a + b)", 2, build_sqrt_add, TARGET, false, 0, 0},
    {"a * b + c", 3, build_multiply_add, TARGET, false, 0, 0},
    {"sum(a)", 1, build_sum, 0, true, 1, 0},
    {"sum(a, axis=0), 4096 columns", 1, build_sum, 0, true, 1, 4096},
    {"sum(a, axis=1), 4096 columns", 1, build_sum, 0, true, 2, 4096},
    {"sum(a, axis=1), 16 columns", 1, build_sum, 0, true, 2, 16},
    {"sum(a*a, axis=0), 4096 columns", 1, build_sum_of_squares, 0, true, 1, 4096},
    {"mean std min max, axis=0", 1, build_mean_and_others, 0, true, 1, 4096},
    {"mean std min max, axis=1", 1, build_mean_and_others, 0, true, 2, 4096},
    {"uniform", 0, build_uniform, 0, false, 0, 0},
    {"normal", 0, build_normal, 0, false, 0, 0},
};

static void shape_grain(struct grain *grain, const struct expression *e, size_t n, enum dtype dtype)
{
    shape_flat(&grain->shape, n);
    for (unsigned j = 0; j < e->n_inputs; j++)
        laid_flat(&grain->inputs[j], &grain->shape, dtype);
    laid_flat(&grain->outputs[0], &grain->shape, dtype);
    if (e->columns == 0)
        return;
    grain->shape.ndim = 2;
    grain->shape.count[0] = (int64_t)n / e->columns;
    grain->shape.count[1] = e->columns;
    grain->shape.order[1] = 1;
    grain->inputs[0].view.strides[1] = (int64_t)dtype_size(dtype);
    grain->inputs[0].view.strides[0] = (int64_t)dtype_size(dtype) * e->columns;
}

static void fill_input(struct laid *l, enum dtype dtype, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (dtype == DTYPE_FLOAT32)
            ((float *)l->arena)[i] = (float)(i % 1000) * 0.5f;
        else
            ((double *)l->arena)[i] = (double)(i % 1000) * 0.5;
    }
}

/* As many grains as the slot holds, of the size that the planner would choose. Returns the bytes
 * that they read and write. */
static uint64_t fill_tile(struct area *area, struct cuda_tile *tile, struct built *b,
                          const struct expression *e, enum dtype dtype)
{
    static struct grain grain;
    size_t grain_bytes = e->n_inputs <= 1 ? 256u << 10 : 128u << 10; /* of an operand */
    unsigned n_grains = CUDA_TILE_MAX_GRAINS;
    memset(&grain, 0, sizeof(grain));
    shape_grain(&grain, e, grain_bytes / dtype_size(dtype), dtype);
    b->program.passes[0].reduced_axes = e->reduced_axes;
    b->program.passes[0].ndim = grain.shape.ndim;
    struct engine_room room = grain_room(&grain, &b->program, 0);
    while (n_grains > 1 && cuda_tile_need_bytes(&b->program, 0, n_grains, &room) > area->slot_bytes)
        n_grains--;
    rig_must(-cuda_tile_begin(tile, &b->program, 0, NULL, n_grains, &room, area->pinned,
                              area->slot_bytes),
             "a tile");
    for (unsigned g = 0; g < n_grains; g++) {
        grain_place(&grain, tile);
        for (unsigned j = 0; j < e->n_inputs; j++)
            fill_input(&grain.inputs[j], dtype, grain.shape.n);
        grain_add(&grain, tile);
    }
    return (uint64_t)n_grains * (e->n_inputs + !e->has_no_store) * grain_bytes;
}

static double seconds_between(struct rig *rig)
{
    uint64_t ns;
    rig_must(cuda_event_record(rig->end, rig->stream), "an event");
    rig_must(cuda_event_wait(rig->end), "the device");
    rig_must(cuda_event_elapsed_ns(rig->begin, rig->end, &ns), "an event's time");
    return (double)(ns ? ns : 1) * 1e-9;
}

static double run_tiles(struct rig *rig, const struct area *area, const struct cuda_tile *tile)
{
    rig_must(cuda_event_record(rig->begin, rig->stream), "an event");
    for (unsigned i = 0; i < area->n_slots; i++)
        rig_must(cuda_tile_launch(tile, area->device + i * area->slot_bytes, rig->stream),
                 "launching");
    return seconds_between(rig);
}

/* As many bytes read and written as n_slots tiles of moved_bytes. */
static double run_copies(struct rig *rig, const struct area *area, uint64_t moved_bytes,
                         bool is_whole)
{
    uint64_t half = area->n_bytes / 2, each = moved_bytes / 2;
    rig_must(cuda_event_record(rig->begin, rig->stream), "an event");
    if (is_whole) {
        rig_must(cuda_copy_on_device(area->device + half, area->device, each * area->n_slots,
                                     rig->stream),
                 "copying");
    } else {
        for (unsigned i = 0; i < area->n_slots; i++)
            rig_must(cuda_copy_on_device(area->device + half + i * each, area->device + i * each,
                                         each, rig->stream),
                     "copying");
    }
    return seconds_between(rig);
}

static void bench_expression(struct checkcuda *c, struct area *area, const struct expression *e,
                             enum dtype dtype)
{
    static struct built b;
    struct rig *rig = c->rig;
    struct cuda_tile tile;
    double ours[ROUNDS], whole[ROUNDS], pieces[ROUNDS];
    e->build(&b, dtype);
    grain_space(&b);
    uint64_t moved_bytes = fill_tile(area, &tile, &b, e, dtype);
    for (unsigned i = 0; i < area->n_slots; i++)
        rig_must(cuda_copy_to_device(area->device + i * area->slot_bytes, area->pinned,
                                     cuda_tile_to_device_bytes(&tile), rig->stream),
                 "copying");
    run_tiles(rig, area, &tile);
    for (int i = 0; i < ROUNDS; i++)
        ours[i] = run_tiles(rig, area, &tile);
    for (int i = 0; i < ROUNDS; i++) {
        whole[i] = run_copies(rig, area, moved_bytes, true);
        pieces[i] = run_copies(rig, area, moved_bytes, false);
    }
    double us = median(ours, ROUNDS), one = median(whole, ROUNDS), many = median(pieces, ROUNDS);
    double limit = one < many ? one : many;
    double gb = (double)moved_bytes * area->n_slots * 1e-9;
    char target[32] = "-";
    if (e->target > 0)
        snprintf(target, sizeof(target), "at least %.2f", e->target);
    printf("RESULT\t%s %s on the device, tiles of %llu MiB\t%.1f GB/s\tdevice's copy %.1f GB/s"
           "\t%.2f\t%s\n",
           e->name, dtype_name(dtype), (unsigned long long)(area->slot_bytes >> 20), gb / us,
           gb / limit, limit / us, target);
    c->check.n_run++;
}

static void bench_slots(struct checkcuda *c, uint64_t n_bytes, uint64_t slot_bytes)
{
    struct area area = {.slot_bytes = slot_bytes, .n_slots = (unsigned)(n_bytes / slot_bytes)};
    void *device, *pinned;
    if (area.n_slots == 0)
        return;
    area.n_bytes = area.n_slots * slot_bytes;
    rig_must(cuda_malloc(area.n_bytes, &device), "device memory");
    rig_must(cuda_host_alloc(slot_bytes, &pinned), "pinned memory");
    area.device = device;
    area.pinned = pinned;
    for (size_t i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++) {
        bench_expression(c, &area, &expressions[i], DTYPE_FLOAT32);
        bench_expression(c, &area, &expressions[i], DTYPE_FLOAT64);
    }
    cuda_free(device);
    cuda_host_free(pinned);
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* tile: NULL for the empty kernel. */
static double floor_us(struct rig *rig, const struct cuda_tile *tile)
{
    static double took[FLOOR_ROUNDS];
    uint64_t to_bytes = FLOOR_ITEMS * sizeof(double), offset = to_bytes, from_bytes = to_bytes;
    cuda_event end;
    rig_must(cuda_event_new(false, &end), "an event");
    if (tile) {
        to_bytes = cuda_tile_to_device_bytes(tile);
        cuda_tile_from_device(tile, &offset, &from_bytes);
    }
    for (int i = 0; i < FLOOR_ROUNDS; i++) {
        double began = now_us();
        rig_must(cuda_copy_to_device(rig->device_slot, rig->slot, to_bytes, rig->stream), "in");
        rig_must(tile ? cuda_tile_launch(tile, rig->device_slot, rig->stream)
                      : bench_empty_launch(rig->stream),
                 "launching");
        rig_must(cuda_copy_from_device(rig->slot + offset, rig->device_slot + offset, from_bytes,
                                       rig->stream),
                 "out");
        rig_must(cuda_event_record(end, rig->stream), "an event");
        rig_must(cuda_event_wait(end), "the end");
        took[i] = now_us() - began;
    }
    cuda_event_free(end);
    qsort(took, FLOOR_ROUNDS, sizeof(took[0]), compare_doubles);
    return took[FLOOR_ROUNDS / 2];
}

static void bench_floor(struct checkcuda *c)
{
    static struct built b;
    static struct grain grain;
    struct cuda_tile tile;
    build_sqrt(&b, DTYPE_FLOAT64);
    grain_space(&b);
    shape_flat(&grain.shape, FLOOR_ITEMS);
    laid_flat(&grain.inputs[0], &grain.shape, DTYPE_FLOAT64);
    laid_flat(&grain.outputs[0], &grain.shape, DTYPE_FLOAT64);
    rig_begin(c->rig, &tile, &b.program, 0, NULL, &grain, 1);
    grain_place(&grain, &tile);
    memset(grain.inputs[0].arena, 0, grain.inputs[0].n_bytes);
    grain_add(&grain, &tile);
    double ours = floor_us(c->rig, &tile), empty = floor_us(c->rig, NULL);
    printf("RESULT\tcopy in, interpreter, copy out, 1,000 float64\tp50 %.1f us\twith an empty "
           "kernel %.1f us\t%.2f\t-\n",
           ours, empty, ours / empty);
    printf("FLOOR\t%.3f\n", empty);
    c->check.n_run++;
}

void checkcuda_bench(struct checkcuda *c, uint64_t max_bytes)
{
    uint64_t free_bytes, total_bytes;
    rig_must(cuda_memory_info(&free_bytes, &total_bytes), "the device's memory");
    uint64_t n_bytes = free_bytes / 4 < MAX_MEMORY ? free_bytes / 4 : MAX_MEMORY;
    if (max_bytes && n_bytes > max_bytes)
        n_bytes = max_bytes;
    bench_slots(c, n_bytes, 8u << 20);
    bench_slots(c, n_bytes, 64u << 20);
    bench_floor(c);
}
