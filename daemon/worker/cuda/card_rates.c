/* How fast the link and the device are.
 *
 * Copies of pinned memory, timed by events: a small and a large one each way give rate and overhead
 * of a copy; the large ones both ways at once tell whether the directions share the link. A copy on
 * the device gives its memory's rate. A tile of a long expression gives the rate of work, a tile of
 * nearly nothing, from the host and back, the floor of a job; its result is compared with the
 * host's arithmetic, which is exact for these values.
 *
 * Matrix products are measured with ever larger ones, too; the matrices are whatever is there, as
 * fast as all else.
 *
 * A first round is not counted, then the best counts. Where a round took long, no other follows; on
 * a slow link the large copies are smaller; and the sizes for the device's memory and for the work
 * grow only as long as the last step was short. So a slow link or device costs some rounds, not
 * seconds.
 *
 * Called by card.c, with no one else on the device's streams.
 */
#include "daemon/worker/cuda/card_rates.h"
#include "daemon/worker/measure.h"
#include "daemon/worker/io/port.h"
#include "kernels/cuda/tile.h"
#include "proto/util.h"

#include <string.h>

#define ROUNDS             3
#define LONG_NS            UINT64_C(1000000) /* of one round: no other follows */
#define SHORT_NS           UINT64_C(300000)  /* of a step: a larger one follows */
#define SMALL_COPY         ((uint64_t)256 * 1024)
#define MAX_FIT            1.25
#define LARGE_COPY         ((uint64_t)8 * 1024 * 1024)
#define DEVICE_COPY        ((uint64_t)128 * 1024 * 1024)
#define HOST_COPY          ((uint64_t)4 * 1024 * 1024) /* a thread */
#define HOST_MAX_COPY      ((uint64_t)64 * 1024 * 1024)
#define SMALL_ELEMENTS     1000
#define SMALL_CALLS        4  /* of the runtime, for a small tile, but for waiting */
#define TURN_CALLS         14 /* for a tile of a pipeline */
#define WORK_ELEMENTS      16384
#define WORK_MAX_GRAINS    128u
#define PRODUCT_EXTENT     64
#define PRODUCT_MAX_EXTENT 4096

static const char small_expression[] = "a*a + a*3 - a";
static const char long_expression[] =
    "((((((((a*a + 1)*a + 2)*a + 3)*a + 4)*a + 5)*a + 6)*a + 7)*a + 8)*a";

enum { EVENT_BEGIN, EVENT_END, EVENT_BEGIN_BACK, EVENT_END_BACK, N_EVENTS };

struct measuring {
    const struct card *card;
    uint64_t room_bytes;  /* of both slabs */
    uint64_t large_bytes; /* of a large copy */
    cuda_event events[N_EVENTS];
};

/* One round of something: what it took, by the device's clock or the host's. */
typedef int round_function(struct measuring *m, void *argument, uint64_t *ret_ns);

static int best_of(struct measuring *m, round_function *round, void *argument, uint64_t *ret_ns)
{
    uint64_t best = UINT64_MAX, ns = 0;
    int r = round(m, argument, &ns);
    for (unsigned i = 0; i < ROUNDS && !r && (i == 0 || ns < LONG_NS); i++) {
        r = round(m, argument, &ns);
        best = min_u64(best, ns);
    }
    *ret_ns = max_u64(best, 1);
    return r;
}

/* Copies --------------------------------------------------------------------------------------- */

struct copying {
    bool goes_to_device, comes_back; /* both: at once, from and to different places */
    uint64_t n_bytes;
};

static int copy_to(struct measuring *m, uint64_t n_bytes)
{
    const struct card *card = m->card;
    int r = cuda_event_record(m->events[EVENT_BEGIN], card->to_device);
    if (!r)
        r = cuda_copy_to_device(card->slab, card->pinned, n_bytes, card->to_device);
    return r ? r : cuda_event_record(m->events[EVENT_END], card->to_device);
}

static int copy_back(struct measuring *m, uint64_t n_bytes)
{
    const struct card *card = m->card;
    uint64_t offset = m->room_bytes / 2;
    int r = cuda_event_record(m->events[EVENT_BEGIN_BACK], card->from_device);
    if (!r)
        r = cuda_copy_from_device(card->pinned + offset, card->slab + offset, n_bytes,
                                  card->from_device);
    return r ? r : cuda_event_record(m->events[EVENT_END_BACK], card->from_device);
}

static int elapsed_since(struct measuring *m, unsigned begin, unsigned end, uint64_t *ret_ns)
{
    uint64_t ns = 0;
    int r = cuda_event_wait(m->events[end]);
    if (!r)
        r = cuda_event_elapsed_ns(m->events[begin], m->events[end], &ns);
    *ret_ns = max_u64(*ret_ns, ns);
    return r;
}

static int round_of_copies(struct measuring *m, void *argument, uint64_t *ret_ns)
{
    const struct copying *c = argument;
    bool is_both = c->goes_to_device && c->comes_back;
    int r = c->goes_to_device ? copy_to(m, c->n_bytes) : 0;
    if (!r && is_both) /* so that both begin behind the mark */
        r = cuda_stream_wait(m->card->from_device, m->events[EVENT_BEGIN]);
    if (!r && c->comes_back)
        r = copy_back(m, c->n_bytes);
    *ret_ns = 0;
    if (!r && c->goes_to_device)
        r = elapsed_since(m, EVENT_BEGIN, EVENT_END, ret_ns);
    if (!r && c->comes_back)
        r = elapsed_since(m, is_both ? EVENT_BEGIN : EVENT_BEGIN_BACK, EVENT_END_BACK, ret_ns);
    return r;
}

/* What the link copies in about LONG_NS: whole small copies, at least four. */
static uint64_t large_bytes(const struct measuring *m, uint64_t small_ns)
{
    uint64_t n = max_u64(LONG_NS / small_ns, 4);
    return min_u64(n * SMALL_COPY, min_u64(LARGE_COPY, m->room_bytes / 2));
}

/* time = overhead + bytes / rate, through the two points that were measured; but a small copy that
 * something held up must not make the link look faster than the large copy can explain. */
static int measure_direction(struct measuring *m, bool goes_to_device, double *ret_rate,
                             double *ret_overhead)
{
    struct copying small = {goes_to_device, !goes_to_device, SMALL_COPY};
    struct copying large = {goes_to_device, !goes_to_device, 0};
    uint64_t small_ns = 0, large_ns = 0;
    int r = best_of(m, round_of_copies, &small, &small_ns);
    if (r)
        return r;
    large.n_bytes = m->large_bytes = large_bytes(m, small_ns);
    r = best_of(m, round_of_copies, &large, &large_ns);
    if (r)
        return r;
    double least = (double)large.n_bytes / ((double)large_ns / 1e9);
    double most = least * MAX_FIT;
    double fitted = large_ns > small_ns ? (double)(large.n_bytes - small.n_bytes) /
                                              ((double)(large_ns - small_ns) / 1e9)
                                        : most;
    *ret_rate = fitted > most ? most : fitted;
    double overhead = (double)small_ns / 1e9 - (double)small.n_bytes / *ret_rate;
    *ret_overhead = overhead > 0 ? overhead : 0;
    return 0;
}

static int measure_link(struct measuring *m, struct card_rates *ret)
{
    struct copying both = {true, true, 0};
    double to_overhead = 0, from_overhead = 0;
    uint64_t ns = 0;
    int r = measure_direction(m, true, &ret->rates.to_device, &to_overhead);
    if (!r)
        r = measure_direction(m, false, &ret->rates.from_device, &from_overhead);
    both.n_bytes = m->large_bytes;
    if (!r)
        r = best_of(m, round_of_copies, &both, &ns);
    if (r)
        return r;
    bool is_to_slower = ret->rates.to_device < ret->rates.from_device;
    ret->both_ways = 2.0 * (double)both.n_bytes / ((double)ns / 1e9);
    ret->slower = is_to_slower ? ret->rates.to_device : ret->rates.from_device;
    ret->overhead_seconds = to_overhead > from_overhead ? to_overhead : from_overhead;
    return 0;
}

static int round_on_device(struct measuring *m, void *argument, uint64_t *ret_ns)
{
    const struct card *card = m->card;
    const uint64_t *n_bytes = argument;
    *ret_ns = 0;
    int r = cuda_event_record(m->events[EVENT_BEGIN], card->compute);
    if (!r)
        r = cuda_copy_on_device(card->slab + *n_bytes, card->slab, *n_bytes, card->compute);
    if (!r)
        r = cuda_event_record(m->events[EVENT_END], card->compute);
    return r ? r : elapsed_since(m, EVENT_BEGIN, EVENT_END, ret_ns);
}

/* Of the slab, what is not cuBLAS's. */
static uint64_t device_bytes(const struct card *card)
{
    return card->slab_bytes - card->workspace_bytes;
}

/* Larger until the device's caches hold little of it. */
static int measure_device(struct measuring *m, double *ret_rate)
{
    uint64_t room = device_bytes(m->card) / 2, n_bytes = SMALL_COPY, ns = 0;
    for (;;) {
        int r = best_of(m, round_on_device, &n_bytes, &ns);
        if (r)
            return r;
        *ret_rate = 2.0 * (double)n_bytes / ((double)ns / 1e9);
        if (ns > SHORT_NS || n_bytes * 4 > min_u64(room, DEVICE_COPY))
            return 0;
        n_bytes *= 4;
    }
}

/* Tiles ---------------------------------------------------------------------------------------- */

struct working {
    uint64_t calls_ns; /* of a small tile, the least */
    struct program *program;
    struct cuda_tile tile;
    float *input, *output; /* of the first grain */
};

static void add_grain(struct working *w, int64_t n_elements, bool is_first)
{
    static const int order[] = {0};
    uint64_t n_bytes = (uint64_t)n_elements * sizeof(float);
    struct engine_view input = {.base = cuda_tile_place_input(&w->tile, n_bytes), .strides = {4}};
    struct engine_view output = {.base = cuda_tile_place_output(&w->tile, n_bytes), .strides = {4}};
    struct engine_box box = {.ndim = 1, .count = &n_elements, .axis_order = order};
    float *values = input.base;
    for (int64_t i = 0; i < n_elements; i++)
        values[i] = (float)(i % 16);
    cuda_tile_add(&w->tile, &box, &input, &output, NULL);
    if (is_first) {
        w->input = input.base;
        w->output = output.base;
    }
}

static int fill_tile(struct working *w, const struct card *card, const char *expression,
                     int64_t n_elements, unsigned n_grains)
{
    uint64_t n_bytes = round_up_u64((uint64_t)n_elements * sizeof(float), ENGINE_SLOT_ALIGN);
    uint64_t slot_bytes = min_u64(card->pinned_bytes, device_bytes(card));
    const struct engine_room room = {
        .input_bytes = n_bytes, .output_bytes = n_bytes, .n_elements = (uint64_t)n_elements};
    int r = measure_compile(expression, n_elements, &w->program);
    if (!r)
        r = cuda_tile_begin(&w->tile, w->program, 0, NULL, n_grains, &room, card->pinned,
                            slot_bytes);
    for (unsigned i = 0; i < n_grains && !r; i++)
        add_grain(w, n_elements, i == 0);
    return r;
}

static int launch_between(struct measuring *m, struct working *w)
{
    const struct card *card = m->card;
    int r = cuda_copy_to_device(card->slab, card->pinned, cuda_tile_to_device_bytes(&w->tile),
                                card->small);
    if (!r)
        r = cuda_event_record(m->events[EVENT_BEGIN], card->small);
    if (!r)
        r = cuda_tile_launch(&w->tile, card->slab, card->small);
    return r ? r : cuda_event_record(m->events[EVENT_END], card->small);
}

/* As small.c does it. */
static int round_of_small(struct measuring *m, void *argument, uint64_t *ret_ns)
{
    struct working *w = argument;
    const struct card *card = m->card;
    uint64_t begin = clock_ns(), offset, n_bytes;
    cuda_tile_from_device(&w->tile, &offset, &n_bytes);
    int r = cuda_copy_to_device(card->slab, card->pinned, cuda_tile_to_device_bytes(&w->tile),
                                card->small);
    if (!r)
        r = cuda_tile_launch(&w->tile, card->slab, card->small);
    if (!r)
        r = cuda_copy_from_device(card->pinned + offset, card->slab + offset, n_bytes, card->small);
    if (!r)
        r = cuda_event_record(m->events[EVENT_END_BACK], card->small);
    w->calls_ns = min_u64(w->calls_ns, clock_ns() - begin);
    if (!r)
        r = cuda_event_wait(m->events[EVENT_END_BACK]);
    *ret_ns = clock_ns() - begin;
    return r;
}

static int round_of_work(struct measuring *m, void *argument, uint64_t *ret_ns)
{
    *ret_ns = 0;
    int r = launch_between(m, argument);
    return r ? r : elapsed_since(m, EVENT_BEGIN, EVENT_END, ret_ns);
}

static bool is_right(const struct working *w)
{
    for (unsigned i = 0; i < SMALL_ELEMENTS; i++) {
        float a = w->input[i];
        if (w->output[i] != a * a + a * 3 - a)
            return false;
    }
    return true;
}

static int measure_small(struct measuring *m, double *ret_seconds, double *ret_turn_seconds)
{
    struct working w = {.calls_ns = UINT64_MAX};
    uint64_t ns = 0;
    int r = fill_tile(&w, m->card, small_expression, SMALL_ELEMENTS, 1);
    if (!r)
        r = best_of(m, round_of_small, &w, &ns);
    if (!r && !is_right(&w))
        r = CARD_WRONG_RESULT;
    program_free(w.program);
    *ret_seconds = (double)ns / 1e9;
    *ret_turn_seconds = (double)w.calls_ns / 1e9 / SMALL_CALLS * TURN_CALLS;
    return r;
}

static int measure_work_of(struct measuring *m, int64_t n_elements, unsigned n_grains,
                           double *ret_rate, uint64_t *ret_ns)
{
    struct working w = {.program = NULL};
    int r = fill_tile(&w, m->card, long_expression, n_elements, n_grains);
    if (!r)
        r = best_of(m, round_of_work, &w, ret_ns);
    if (!r)
        *ret_rate = (double)n_elements * n_grains * w.program->n_insns / ((double)*ret_ns / 1e9);
    program_free(w.program);
    return r;
}

static int measure_work_rate(struct measuring *m, double *ret_rate)
{
    uint64_t ns = 0, n_bytes = WORK_ELEMENTS * sizeof(float);
    int r = 0;
    for (unsigned n_grains = 1; !r && n_grains <= WORK_MAX_GRAINS && ns < SHORT_NS; n_grains *= 4)
        if (n_grains * 4 * n_bytes <= m->room_bytes)
            r = measure_work_of(m, WORK_ELEMENTS, n_grains, ret_rate, &ns);
    return r;
}

/* Matrix products ------------------------------------------------------------------------------ */

static int round_of_product(struct measuring *m, void *argument, uint64_t *ret_ns)
{
    const struct card *card = m->card;
    *ret_ns = 0;
    int r = cuda_event_record(m->events[EVENT_BEGIN], card->products);
    if (!r)
        r = cuda_multiply(card->blas, argument, card->products);
    if (!r)
        r = cuda_event_record(m->events[EVENT_END], card->products);
    return r ? r : elapsed_since(m, EVENT_BEGIN, EVENT_END, ret_ns);
}

static struct cuda_matrix square(const struct card *card, unsigned number, int64_t n,
                                 int64_t item_bytes)
{
    return (struct cuda_matrix){.base = card->slab + number * n * n * item_bytes,
                                .row_bytes = n * item_bytes,
                                .column_bytes = item_bytes};
}

static int measure_product(struct measuring *m, enum dtype dtype, bool is_tf32, double *ret_rate)
{
    int64_t n = PRODUCT_EXTENT, item_bytes = (int64_t)dtype_size(dtype);
    uint64_t ns = 0, room = device_bytes(m->card);
    int r = 0;
    for (; !r && ns < SHORT_NS && n <= PRODUCT_MAX_EXTENT; n *= 2) {
        if ((uint64_t)(3 * n * n * item_bytes) > room)
            break;
        struct cuda_multiply multiply = {.dtype = dtype,
                                         .is_tf32 = is_tf32,
                                         .n_matrices = 1,
                                         .n_rows = n,
                                         .n_columns = n,
                                         .n_depth = n,
                                         .left = square(m->card, 0, n, item_bytes),
                                         .right = square(m->card, 1, n, item_bytes),
                                         .result = square(m->card, 2, n, item_bytes)};
        r = best_of(m, round_of_product, &multiply, &ns);
        *ret_rate = 2.0 * (double)(n * n * n) / ((double)ns / 1e9);
    }
    return r;
}

static int measure_products(struct measuring *m, struct plan_rates *ret_rates)
{
    int r = measure_product(m, DTYPE_INT32, false, &ret_rates->product_integer);
    if (!r && m->card->blas)
        r = measure_product(m, DTYPE_FLOAT32, false, &ret_rates->product_float32);
    if (!r && m->card->blas && m->card->device.major >= CARD_TF32_LEAST_MAJOR)
        r = measure_product(m, DTYPE_FLOAT32, true, &ret_rates->product_tf32);
    if (!r && m->card->blas)
        r = measure_product(m, DTYPE_FLOAT64, false, &ret_rates->product_float64);
    return r;
}

int card_rates_measure(const struct card *card, unsigned n_threads, struct card_rates *ret_rates)
{
    struct measuring m = {.card = card,
                          .room_bytes = min_u64(card->pinned_bytes, device_bytes(card))};
    struct card_rates found = {.both_ways = 0};
    int r = 0;
    uint64_t host_bytes = min_u64(n_threads * HOST_COPY, HOST_MAX_COPY);
    found.rates.memory =
        measure_copy(card->pinned, min_u64(card->pinned_bytes, host_bytes), n_threads);
    for (unsigned i = 0; i < N_EVENTS && !r; i++)
        r = cuda_event_new(false, &m.events[i]);
    if (!r)
        r = measure_link(&m, &found);
    if (!r)
        r = measure_device(&m, &found.rates.device);
    if (!r)
        r = measure_small(&m, &found.rates.job_seconds, &found.turn_seconds);
    if (!r)
        r = measure_work_rate(&m, &found.rates.work);
    if (!r)
        r = measure_products(&m, &found.rates);
    for (unsigned i = 0; i < N_EVENTS; i++)
        if (m.events[i])
            cuda_event_free(m.events[i]);
    if (!r)
        *ret_rates = found;
    return r;
}
