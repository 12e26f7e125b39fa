/* The engine of a CUDA worker: the card, and what tiles need on it. See engine.h.
 *
 * Everything is taken here, once: after cuda_engine_new() nothing of a job's life allocates memory
 * of the device or pinned memory, or makes streams or events.
 *
 * Called by the worker's program, and by the worker as its engine.
 */
#include "daemon/worker/cuda/engine.h"
#include "daemon/memory.h"
#include "daemon/poolmap.h"
#include "kernels/plan/plan_engine.h"
#include "proto/util.h"

#include <string.h>

static int start(struct engine *base, struct sched *sched)
{
    struct cuda_engine *e = (struct cuda_engine *)base;
    e->sched = sched;
    return cuda_pipeline_start(e);
}

static void stop(struct engine *base)
{
    cuda_pipeline_stop((struct cuda_engine *)base);
}

static struct engine *free_engine(struct engine *base)
{
    struct cuda_engine *e = (struct cuda_engine *)base;
    if (!e)
        return NULL;
    for (unsigned i = 0; i < CUDA_MAX_FLIGHTS; i++)
        cuda_flight_deinit(&e->flights[i]);
    pthread_cond_destroy(&e->tiles.wake);
    pthread_cond_destroy(&e->multiplies.wake);
    pthread_cond_destroy(&e->stores.wake);
    cuda_event *const events[] = {&e->tiles.landed, &e->stores.landed, &e->stored};
    for (unsigned i = 0; i < ARRAY_LENGTH(events); i++)
        if (*events[i])
            cuda_event_free(steal_ptr(*events[i]));
    cuda_flight_deinit(&e->small_flight);
    e->registered = registered_free(e->registered);
    e->card = card_free(e->card);
    pthread_mutex_destroy(&e->lock);
    free(e->small_work);
    free(e->works);
    free(e);
    return NULL;
}

static unsigned n_ready_pairs(const struct engine *base)
{
    return card_n_ready_pairs(((const struct cuda_engine *)base)->card);
}

static void pack_ready(const struct engine *base, msgpack_packer *p)
{
    card_pack_ready(((const struct cuda_engine *)base)->card, p);
}

static unsigned n_stats_pairs(const struct engine *base)
{
    return card_n_stats_pairs(((const struct cuda_engine *)base)->card);
}

static void pack_stats(const struct engine *base, msgpack_packer *p)
{
    card_pack_stats(((const struct cuda_engine *)base)->card, p);
}

static void region_mapped(struct engine *base, struct region *region)
{
    struct cuda_engine *e = (struct cuda_engine *)base;
    if (e->registered &&
        registered_add(e->registered, region->base, region->size_bytes, region->is_writable))
        return; /* without memory for it: its bytes are staged */
}

static void region_unmapped(struct engine *base, struct region *region)
{
    struct cuda_engine *e = (struct cuda_engine *)base;
    if (e->registered)
        registered_remove(e->registered, region->base);
}

static const struct engine_ops ops = {
    .start = start,
    .stop = stop,
    .free = free_engine,
    .run = cuda_engine_run,
    .run_small = cuda_engine_run_small,
    .read = cuda_engine_read,
    .drop = cuda_engine_drop,
    .n_ready_pairs = n_ready_pairs,
    .pack_ready = pack_ready,
    .n_stats_pairs = n_stats_pairs,
    .pack_stats = pack_stats,
    .region_mapped = region_mapped,
    .region_unmapped = region_unmapped,
};

static void describe(struct cuda_engine *e, unsigned n_threads)
{
    const struct card *card = e->card;
    const struct cuda_device *device = &card->device;
    uint64_t pool_bytes = card->pool_bytes;
    e->base = (struct engine){
        .ops = &ops,
        .kind = "cuda",
        .pool = card->pinned,
        .device_carries = card->pinned + card->carry_offset,
        .n_device_tiles = card->depth,
        .n_device_products = CUDA_MAX_BEGUN,
        .n_device_flights = card->depth + CUDA_MAX_MULTIPLIES + CUDA_MAX_STORES,
        .blas = card->blas ? cuda_blas_version(card->blas) : NULL,
        .why_no_blas = card->blas ? NULL : card->why_no_blas,
        .limits = {.pool_bytes = pool_bytes,
                   .slot_bytes = card->slot_bytes,
                   .carry_limit_bytes = poolmap_carry_limit_bytes(pool_bytes),
                   .product_carry_bytes = poolmap_device_limit_bytes(card->carry_bytes),
                   .device_carry_bytes = card->carry_bytes,
                   .memory_bytes = memory_bytes(),
                   .n_threads = n_threads,
                   .engine = &plan_cuda,
                   .has_blas = card->blas != NULL,
                   .has_tf32 = device->major >= CARD_TF32_LEAST_MAJOR,
                   .why_no_blas = card->why_no_blas,
                   .rates = card->rates}};
    snprintf(e->base.name, sizeof(e->base.name), "cuda:%d", device->index);
    snprintf(e->base.device, sizeof(e->base.device), "%s", device->name);
    snprintf(e->base.level, sizeof(e->base.level), "sm_%d%d", device->major, device->minor);
}

static int make_works(struct cuda_engine *e)
{
    const struct card *card = e->card;
    uint64_t n_slots = card->pool_bytes / card->slot_bytes;
    e->works = calloc(n_slots + 1, sizeof(*e->works));
    e->small_work = calloc(1, sizeof(*e->small_work));
    if (!e->works || !e->small_work)
        return -ENOMEM;
    for (uint64_t i = 0; i < n_slots; i++) {
        e->works[i].device_slot = card->slab + i * card->slot_bytes;
        e->works[i].registered = e->registered;
    }
    e->small_work->device_slot = card->slab + card->small_offset;
    return 0;
}

static int make_flights(struct cuda_engine *e)
{
    int r = cuda_flight_init(&e->small_flight, true);
    if (!r)
        r = cuda_event_new(true, &e->tiles.landed);
    if (!r)
        r = cuda_event_new(true, &e->stores.landed);
    if (!r)
        r = cuda_event_new(false, &e->stored);
    for (unsigned i = 0; i < e->base.n_device_flights && !r; i++)
        r = cuda_flight_init(&e->flights[i], false);
    return r;
}

static void make_line(struct cuda_engine *e, struct cuda_line *line, const char *name,
                      unsigned first, unsigned most)
{
    *line = (struct cuda_line){.engine = e, .name = name, .first = first, .most = most};
    line->queue_end = &line->queue;
    pthread_cond_init(&line->wake, NULL);
}

int cuda_engine_new(const struct cuda_engine_config *config, struct engine **ret_engine)
{
    struct cuda_engine *e = calloc(1, sizeof(*e));
    if (!e) {
        card_free(config->card_take);
        return -ENOMEM;
    }
    e->card = config->card_take;
    pthread_mutex_init(&e->lock, NULL);
    describe(e, config->n_threads);
    make_line(e, &e->tiles, "device", 0, e->base.n_device_tiles);
    make_line(e, &e->multiplies, "device-products", e->base.n_device_tiles, CUDA_MAX_MULTIPLIES);
    make_line(e, &e->stores, "device-stores", e->base.n_device_tiles + CUDA_MAX_MULTIPLIES,
              CUDA_MAX_STORES);
    const struct registered_config registered = {.budget_bytes = config->register_bytes,
                                                 .window_bytes = REGISTERED_WINDOW_BYTES,
                                                 .idle_ns = REGISTERED_IDLE_NS};
    int r = config->register_bytes > 0 ? registered_new(&registered, &e->registered) : 0;
    if (!r)
        r = make_works(e);
    if (!r)
        r = make_flights(e);
    if (r) {
        free_engine(&e->base);
        return r;
    }
    card_baseline(e->card);
    *ret_engine = &e->base;
    return 0;
}
