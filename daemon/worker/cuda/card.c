/* Opening the device, and what the worker tells of it.
 *
 *     count -> context -> streams -> every kernel once -> slabs -> cuBLAS -> measurement ->
 *     (the engine's events) -> baseline
 *
 * A kernel is loaded when it first runs (CUDA_MODULE_LOADING; else all of cuBLAS's thousands would
 * be), and every one that jobs use runs once here, so that no later launch loads anything or makes
 * the driver take memory for it. After the baseline nothing that allocates is called any more; the
 * counts are in `stats` for everybody to see.
 *
 * cuBLAS need not be there: then the device multiplies no matrices of floats, and says why.
 *
 * Whatever goes wrong here ends the process with one of daemon/worker_exit.h, and `error` has the
 * words for the broker. What was opened half-way is given back first, as far as a faulted device
 * lets itself be told.
 *
 * Called by the engine and its program, on the main thread.
 */
#include "daemon/worker/cuda/card.h"
#include "daemon/worker/cuda/card_rates.h"
#include "daemon/worker/cuda/card_refuse.h"
#include "daemon/worker/cuda/card_sizes.h"
#include "daemon/worker/cuda/numa.h"
#include "daemon/worker_exit.h"
#include "kernels/cuda/tile.h"
#include "proto/util.h"
#include "proto/wire/pack.h"

#include <stdio.h>

#define HOLDERS_BYTES 200

static int open_device(struct card *card, int index, struct gad_error *error)
{
    int r = cuda_device_count(&card->n_devices);
    if (r || card->n_devices == 0)
        return card_refuse_driver(r, error);
    if (index < 0 || index >= card->n_devices)
        return card_refuse_index(index, card->n_devices, error);
    r = cuda_device_open(index, &card->device);
    if (r)
        return card_refuse_error("opening the device", r, error);
    card_memory_has_context(card->memory, &card->device);
    return 0;
}

static int make_streams(struct card *card)
{
    int r = cuda_stream_new(CUDA_USUAL, &card->to_device);
    if (!r)
        r = cuda_stream_new(CUDA_USUAL, &card->compute);
    if (!r)
        r = cuda_stream_new(CUDA_USUAL, &card->from_device);
    if (!r)
        r = cuda_stream_new(CUDA_PATIENT, &card->products);
    if (!r)
        r = cuda_stream_new(CUDA_URGENT, &card->small);
    return r;
}

static int wait_for(cuda_stream stream)
{
    cuda_event event;
    int r = cuda_event_new(true, &event);
    if (r)
        return r;
    r = cuda_event_record(event, stream);
    if (!r)
        r = cuda_event_wait(event);
    cuda_event_free(event);
    return r;
}

static int warm_up(struct card *card, struct gad_error *error)
{
    void *scratch;
    int r = make_streams(card);
    if (r)
        return card_refuse_error("making the streams", r, error);
    r = cuda_malloc(CUDA_SLOT_MIN_BYTES, &scratch);
    if (r)
        return card_refuse_error("taking memory for the first run of the kernels", r, error);
    r = cuda_interpreter_warm_up(scratch, card->compute);
    int ended = wait_for(card->compute);
    cuda_free(scratch);
    if (r || ended)
        return card_refuse_error("running every kernel once", r ? r : ended, error);
    card_memory_has_modules(card->memory);
    return 0;
}

static int take_slabs(struct card *card, const struct card_sizes *sizes, const char *holders,
                      const struct card_room *room, struct gad_error *error)
{
    void *slab, *pinned;
    int r = cuda_malloc(sizes->device_bytes, &slab);
    if (r)
        return card_refuse_slab("device-bytes", sizes->device_bytes, room->device_free_bytes,
                                holders, r, error);
    card->slab = slab;
    card->slab_bytes = sizes->device_bytes;
    card->workspace_bytes = sizes->workspace_bytes;
    numa_prefer(numa_node_of(NUMA_SYSFS, card->device.pci));
    r = cuda_host_alloc(sizes->pinned_bytes, &pinned);
    numa_prefer(-1);
    if (r)
        return card_refuse_slab("pinned-bytes", sizes->pinned_bytes, room->host_available_bytes, "",
                                r, error);
    card->pinned = pinned;
    card->pinned_bytes = sizes->pinned_bytes;
    return 0;
}

static int take_memory(struct card *card, const struct card_config *config,
                       struct card_sizes *sizes, struct gad_error *error)
{
    char holders[HOLDERS_BYTES];
    struct card_room room = {.holders = holders};
    int r = cuda_memory_info(&room.device_free_bytes, &room.device_total_bytes);
    if (r)
        return card_refuse_error("asking for the device's free memory", r, error);
    card_host_memory(&room.host_total_bytes, &room.host_available_bytes);
    card_memory_holders(card->memory, holders, sizeof(holders));
    if (card_sizes_choose(config, &room, sizes, error) != 0)
        return WORKER_EXIT_NO_MEMORY;
    return take_slabs(card, sizes, holders, &room, error);
}

static int warm_up_products(struct card *card)
{
    uint64_t n_bytes = card->slab_bytes - card->workspace_bytes;
    int r = cuda_multiply_warm_up(card->blas, card->slab, n_bytes, card->products);
    if (r && card->blas) {
        snprintf(card->why_no_blas, sizeof(card->why_no_blas), "cuBLAS cannot multiply: %s",
                 cuda_error_text(r));
        card->blas = cuda_blas_close(card->blas);
        r = cuda_multiply_warm_up(NULL, card->slab, n_bytes, card->products);
    }
    return r ? r : wait_for(card->products);
}

/* Whatever keeps the library from working keeps nothing else from it; a device that was lost by it
 * shows in what comes next. */
static int open_blas(struct card *card, struct gad_error *error)
{
    struct gad_error why = {0};
    card_memory_has_slabs(card->memory);
    int r = cuda_blas_open(card->slab + card->slab_bytes - card->workspace_bytes,
                           card->workspace_bytes, card->products, &card->blas, &why);
    if (r)
        snprintf(card->why_no_blas, sizeof(card->why_no_blas), "%s", why.message);
    r = warm_up_products(card);
    if (r)
        return card_refuse_error("running every kernel of matrix products once", r, error);
    card_memory_has_blas(card->memory);
    return 0;
}

static int measure(struct card *card, const struct card_config *config, struct card_sizes *sizes,
                   struct gad_error *error)
{
    struct card_rates found;
    int r = card_rates_measure(card, config->n_threads, &found);
    if (r)
        return card_refuse_error("measuring the link and the device", r, error);
    const struct card_pace pace = {found.overhead_seconds, found.turn_seconds, found.slower};
    card_sizes_cut(sizes, config->chunk_bytes, &pace);
    card->rates = found.rates;
    card->both_ways = found.both_ways;
    card->slot_bytes = sizes->slot_bytes;
    card->pool_bytes = card->small_offset = sizes->pool_bytes;
    card->carry_offset = card->small_offset + card->slot_bytes;
    card->carry_bytes = sizes->carry_bytes;
    card->depth = card_sizes_depth(sizes, config->depth, found.rates.job_seconds, found.slower);
    return 0;
}

static int open_all(struct card *card, const struct card_config *config, struct gad_error *error)
{
    struct card_sizes sizes;
    int r = open_device(card, config->index, error);
    if (!r)
        r = warm_up(card, error);
    if (!r)
        r = take_memory(card, config, &sizes, error);
    if (!r)
        r = open_blas(card, error);
    if (!r)
        r = measure(card, config, &sizes, error);
    return r;
}

int card_open(const struct card_config *config, struct card **ret_card, struct gad_error *error)
{
    struct card *card = calloc(1, sizeof(*card));
    struct card_memory *memory = calloc(1, sizeof(*memory));
    if (!card || !memory) {
        free(card);
        free(memory);
        error_set(error, GAD_NO_MEMORY, "engine", "the process has no memory left");
        return WORKER_EXIT_NO_MEMORY;
    }
    card->memory = memory;
    setenv("CUDA_MODULE_LOADING", "LAZY", 1);
    card_memory_begin(memory);
    int r = open_all(card, config, error);
    if (r) {
        card_free(card);
        return r;
    }
    *ret_card = card;
    return 0;
}

struct card *card_free(struct card *card)
{
    if (!card)
        return NULL;
    cuda_stream streams[] = {card->small, card->products, card->from_device, card->compute,
                             card->to_device};
    /* Something is under way where the start failed between two steps. A device that is lost says
     * so, and has stopped. */
    for (unsigned i = 0; i < ARRAY_LENGTH(streams); i++)
        if (streams[i])
            (void)!wait_for(streams[i]);
    card->blas = cuda_blas_close(card->blas);
    if (card->pinned)
        cuda_host_free(card->pinned);
    if (card->slab)
        cuda_free(card->slab);
    for (unsigned i = 0; i < ARRAY_LENGTH(streams); i++)
        if (streams[i])
            cuda_stream_free(streams[i]);
    card_memory_end(card->memory);
    free(card->memory);
    free(card);
    return NULL;
}

void card_baseline(struct card *card)
{
    card->baseline = cuda_allocations();
    card_memory_has_all(card->memory, &card->baseline);
}

/* What is told ----------------------------------------------------------------------------------
 */

static void pack_version(msgpack_packer *p, const char *key, int version)
{
    char text[32];
    snprintf(text, sizeof(text), "%d.%d", version / 1000, version % 1000 / 10);
    pack_key_str(p, key, text);
}

unsigned card_n_ready_pairs(const struct card *card)
{
    (void)card;
    return 9;
}

void card_pack_ready(const struct card *card, msgpack_packer *p)
{
    pack_key_i64(p, "index", card->device.index);
    pack_key_i64(p, "devices", card->n_devices);
    pack_version(p, "driver", card->device.driver_version);
    pack_version(p, "runtime", card->device.runtime_version);
    pack_key_str(p, "uuid", card->device.uuid);
    pack_key_str(p, "pci", card->device.pci);
    pack_key_u64(p, "depth", card->depth);
    pack_key_f64(p, "both_ways", card->both_ways);
    card_memory_pack(card->memory, p);
}

unsigned card_n_stats_pairs(const struct card *card)
{
    (void)card;
    return 5;
}

void card_pack_stats(const struct card *card, msgpack_packer *p)
{
    struct cuda_allocations now = cuda_allocations();
    uint64_t process_bytes, free_bytes;
    card_memory_refresh(card->memory, &process_bytes, &free_bytes);
    pack_key_u64(p, "device_allocations", now.n_device);
    pack_key_u64(p, "host_allocations", now.n_host);
    pack_key_u64(p, "registered_bytes", now.registered_bytes);
    pack_key_u64(p, "process_device_bytes", process_bytes);
    pack_key_u64(p, "device_free_bytes", free_bytes);
}
