/* The harness's engine: CUDA on the test double, with the smallest slots that there are. Clients'
 * regions are registered where HARNESS_REGISTER_BYTES says how much of them. */
#include "daemon/worker/cuda/engine.h"
#include "proto/util.h"
#include "tests/unit/daemon/worker/harness.h"

#define SLOT_BYTES CUDA_SLOT_MIN_BYTES

struct engine *harness_engine(uint64_t pool_bytes, unsigned n_threads)
{
    struct engine *engine = NULL;
    struct card *card = NULL;
    struct gad_error error = {0};
    uint64_t n_slots = pool_bytes / GRAIN_MAX_TOTAL_BYTES;
    uint64_t slab_bytes = ((n_slots > CARD_MIN_SLOTS ? n_slots : CARD_MIN_SLOTS) + 1) * SLOT_BYTES;
    /* Half as much for products, and an eighth of all is cuBLAS's. */
    uint64_t device_bytes = round_up_u64(slab_bytes * 12 / 7, SLOT_BYTES);
    const struct card_config config = {.device_bytes = device_bytes,
                                       .pinned_bytes = slab_bytes,
                                       .chunk_bytes = SLOT_BYTES,
                                       .depth = CARD_MIN_DEPTH,
                                       .n_threads = n_threads};
    cr_assert(eq(int, card_open(&config, &card, &error), 0), "%s", error.message);
    cr_assert(eq(u64, card->slot_bytes, SLOT_BYTES));
    cr_assert(ge(u64, card->pool_bytes, n_slots * SLOT_BYTES));
    card->pool_bytes = n_slots * SLOT_BYTES;
    const char *register_bytes = getenv("HARNESS_REGISTER_BYTES");
    const struct cuda_engine_config with = {
        .card_take = card,
        .n_threads = n_threads,
        .register_bytes = register_bytes ? strtoull(register_bytes, NULL, 10) : 0};
    cr_assert(eq(int, cuda_engine_new(&with, &engine), 0));
    return engine;
}
