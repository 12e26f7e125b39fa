#include "daemon/worker/cuda/card.h"
#include "daemon/worker/cuda/card_refuse.h"
#include "daemon/worker_exit.h"
#include "kernels/cuda/tile.h"
#include "proto/wire/frame.h"
#include "proto/wire/map.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB UINT64_C(1048576)

/* The double's settings are read once a process; every test is one. */
static struct card *card;
static struct gad_error error;
static struct card_config config = {
    .device_bytes = 64 * MIB, .pinned_bytes = 64 * MIB, .n_threads = 2};

static int open_with(const char *settings)
{
    setenv("GPUARRAYD_DOUBLE", settings, 1);
    return card_open(&config, &card, &error);
}

static void check_refused(int status, enum gad_status code, const char *expected, const char *found)
{
    cr_assert(eq(ptr, card, NULL));
    cr_assert(eq(int, error.status, code));
    cr_assert(eq(str, error.expected, (char *)expected));
    cr_assert(eq(str, error.found, (char *)found));
    cr_assert(ne(str, error.message, (char *)""));
    cr_assert(ne(int, status, 0));
}

static void close_card(void)
{
    card = card_free(card);
    struct cuda_allocations left = cuda_allocations();
    cr_assert(eq(u64, left.device_bytes, 0));
    cr_assert(eq(u64, left.host_bytes, 0));
}

Test(card, opens_with_slabs_slots_and_rates, .fini = close_card)
{
    cr_assert(eq(int, open_with(""), 0), "%s", error.message);
    cr_assert(eq(u64, card->slab_bytes, 64 * MIB));
    cr_assert(eq(u64, card->pinned_bytes, 64 * MIB));
    cr_assert(eq(u64, card->slot_bytes & (card->slot_bytes - 1), 0));
    cr_assert(ge(u64, card->slot_bytes, CUDA_SLOT_MIN_BYTES));
    cr_assert(le(u64, card->slot_bytes, CARD_MAX_SLOT_BYTES));
    cr_assert(eq(u64, card->workspace_bytes, 8 * MIB)); /* an eighth */
    uint64_t most = 56 * MIB - 56 * MIB / 3;            /* of the device, for slots */
    cr_assert(
        eq(u64, card->pool_bytes, most / card->slot_bytes * card->slot_bytes - card->slot_bytes));
    cr_assert(eq(u64, card->small_offset, card->pool_bytes));
    cr_assert(eq(u64, card->carry_offset, card->pool_bytes + card->slot_bytes));
    cr_assert(eq(u64, card->carry_offset + card->carry_bytes + card->workspace_bytes, 64 * MIB));
    cr_assert(ge(u32, card->depth, CARD_MIN_DEPTH));
    cr_assert(le(u32, card->depth, CARD_MAX_DEPTH));
    const double rates[] = {card->rates.memory, card->rates.to_device, card->rates.from_device,
                            card->rates.device, card->rates.work,      card->both_ways};
    for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        cr_assert(lt(dbl, 1e4, rates[i]), "rate %u", i);
        cr_assert(lt(dbl, rates[i], 1e15), "rate %u", i);
    }
    cr_assert(lt(dbl, 0, card->rates.job_seconds));
    cr_assert(lt(dbl, card->rates.job_seconds, 60));
}

Test(card, what_is_set_is_kept, .fini = close_card)
{
    config.chunk_bytes = 4 * MIB;
    config.depth = 5;
    cr_assert(eq(int, open_with(""), 0));
    cr_assert(eq(u64, card->slot_bytes, 4 * MIB));
    cr_assert(eq(u64, card->pool_bytes, 32 * MIB)); /* of two thirds of 56 */
    cr_assert(eq(u32, card->depth, 5));
}

Test(card, the_smallest_pool_works, .fini = close_card)
{
    config.device_bytes = 12 * MIB;
    config.pinned_bytes = 10 * MIB;
    cr_assert(eq(int, open_with(""), 0));
    cr_assert(eq(u64, card->workspace_bytes, 12 * MIB / 8));
    cr_assert(eq(u64, card->slot_bytes, 2 * MIB));
    cr_assert(eq(u64, card->pool_bytes, 8 * MIB));
    cr_assert(eq(u32, card->depth, 3));
}

/* No copy is faster than the link, and the rate at most a quarter more than that of the copies. */
Test(card, a_slow_link_is_measured_as_slow, .fini = close_card)
{
    cr_assert(eq(int, open_with("slow-link=200000000"), 0));
    cr_assert(le(dbl, card->rates.to_device, 251e6));
    cr_assert(le(dbl, card->rates.from_device, 251e6));
}

Test(card, the_baseline_is_what_was_allocated_and_asking_allocates_nothing, .fini = close_card)
{
    struct message_writer writer;
    cr_assert(eq(int, open_with(""), 0));
    card_baseline(card);
    cr_assert(eq(u64, card->baseline.device_bytes, 64 * MIB));
    cr_assert(eq(u64, card->baseline.host_bytes, 64 * MIB));
    message_writer_init(&writer);
    for (unsigned i = 0; i < 1000; i++) {
        message_writer_clear(&writer);
        msgpack_pack_map(&writer.packer, card_n_stats_pairs(card));
        card_pack_stats(card, &writer.packer);
    }
    struct cuda_allocations now = cuda_allocations();
    cr_assert(eq(u64, now.n_device, card->baseline.n_device));
    cr_assert(eq(u64, now.n_host, card->baseline.n_host));
    cr_assert(eq(u64, now.n_registered, 0));
    message_writer_deinit(&writer);
}

static uint64_t number(const msgpack_object *map, const char *key)
{
    uint64_t n = 0;
    cr_assert(eq(int, map_require_u64(map, key, &n, &error), 0), "%s", key);
    return n;
}

static void check_memory(const msgpack_object *ready)
{
    const msgpack_object *memory = map_find(ready, "memory");
    cr_assert(ne(ptr, (void *)memory, NULL));
    cr_assert(eq(u64, number(memory, "total"),
                 number(memory, "free") + number(memory, "reserved") +
                     number(memory, "used_by_others") + number(memory, "process")));
    cr_assert(eq(u64, number(memory, "process"),
                 number(memory, "context") + number(memory, "modules") + number(memory, "pool") +
                     number(memory, "other")));
    cr_assert(eq(u64, number(memory, "pool"), 64 * MIB));
    cr_assert(eq(u64, number(memory, "pinned"), 64 * MIB));
}

Test(card, what_it_says_when_it_is_ready, .fini = close_card)
{
    struct message_writer writer;
    struct message message;
    bool has_id;
    config.index = 1;
    config.depth = 3;
    cr_assert(eq(int, open_with("devices=2"), 0));
    card_baseline(card);
    message_writer_init(&writer);
    message_begin_notification(&writer, "worker.ready");
    msgpack_pack_map(&writer.packer, card_n_ready_pairs(card));
    card_pack_ready(card, &writer.packer);
    cr_assert(eq(int, frame_body_check(writer.buffer.data, writer.buffer.size), 0));
    cr_assert(eq(
        int, message_decode(writer.buffer.data, writer.buffer.size, &message, &has_id, &error), 0));
    cr_assert(eq(u64, number(&message.params, "index"), 1));
    cr_assert(eq(u64, number(&message.params, "devices"), 2));
    cr_assert(eq(u64, number(&message.params, "depth"), 3));
    char text[64] = "";
    cr_assert(eq(int, map_copy_str(&message.params, "pci", text, sizeof(text), &error), 0));
    cr_assert(eq(str, text, (char *)"0000:3c:00.0"));
    check_memory(&message.params);
    message_deinit(&message);
    message_writer_deinit(&writer);
}

Test(card, no_driver)
{
    int status = open_with("no-driver");
    cr_assert(eq(int, status, WORKER_EXIT_ABSENT));
    check_refused(status, GAD_NO_ENGINE, "a driver for CUDA 13.0", "none");
    cr_assert(ne(ptr, strstr(error.message, "no NVIDIA driver"), NULL));
}

Test(card, an_old_driver_with_both_versions)
{
    int status = open_with("old-driver");
    int driver, runtime;
    char expected[64], found[64];
    cuda_versions(&driver, &runtime);
    snprintf(expected, sizeof(expected), "a driver for CUDA %d.%d", runtime / 1000,
             runtime % 1000 / 10);
    snprintf(found, sizeof(found), "a driver for CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    cr_assert(lt(int, driver, runtime));
    cr_assert(eq(int, status, WORKER_EXIT_ABSENT));
    check_refused(status, GAD_NO_ENGINE, expected, found);
}

Test(card, no_device)
{
    int status = open_with("devices=0");
    cr_assert(eq(int, status, WORKER_EXIT_ABSENT));
    check_refused(status, GAD_NO_ENGINE, "at least one device", "none");
}

Test(card, a_device_that_does_not_exist)
{
    config.index = 3;
    int status = open_with("devices=2");
    cr_assert(eq(int, status, WORKER_EXIT_ABSENT));
    check_refused(status, GAD_NO_ENGINE, "0 to 1", "3");
    cr_assert(eq(str, error.message, (char *)"there is no device 3: the driver shows 2"));
}

Test(card, a_pool_over_the_free_memory)
{
    config.device_bytes = 300 * MIB;
    int status = open_with("device_bytes=1073741824,used_bytes=805306368,context_bytes=16777216");
    cr_assert(eq(int, status, WORKER_EXIT_NO_MEMORY));
    check_refused(status, GAD_NO_MEMORY, "314572800 bytes free",
                  "251658240 bytes free of 1073741824");
}

Test(card, a_choice_on_a_crowded_card_is_smaller, .fini = close_card)
{
    config.device_bytes = config.pinned_bytes = 0;
    cr_assert(eq(
        int, open_with("device_bytes=1073741824,used_bytes=971111424,context_bytes=16777216"), 0));
    cr_assert(eq(u64, card->slab_bytes, 40 * MIB)); /* half of what is free, in slots */
}

Test(card, memory_that_others_took_in_between)
{
    int status = open_with("fail-malloc=2");
    cr_assert(eq(int, status, WORKER_EXIT_NO_MEMORY));
    cr_assert(eq(int, error.status, GAD_NO_MEMORY));
    cr_assert(eq(str, error.argument, (char *)"device-bytes"));
    cr_assert(eq(str, error.expected, (char *)"67108864 bytes"));
}

Test(card, pinned_memory_that_is_not_to_be_had)
{
    int status = open_with("fail-host-alloc=1");
    cr_assert(eq(int, status, WORKER_EXIT_NO_MEMORY));
    cr_assert(eq(int, error.status, GAD_NO_MEMORY));
    cr_assert(eq(str, error.argument, (char *)"pinned-bytes"));
}

Test(card, a_device_that_faults_as_it_starts)
{
    int status = open_with("sticky-launch=1");
    cr_assert(eq(int, status, WORKER_EXIT_FAULT));
    cr_assert(eq(int, error.status, GAD_DEVICE_FAULT));
    cr_assert(ne(ptr, strstr(error.message, "cudaErrorIllegalAddress"), NULL));
}

/* Which of the two the runtime says depends on the call that looks for the kernel first. */
Test(card, a_device_that_is_older_than_the_code)
{
    const int answers[] = {cudaErrorNoKernelImageForDevice, cudaErrorInvalidDeviceFunction};
    for (unsigned i = 0; i < 2; i++) {
        int status = card_refuse_error("running every kernel once", answers[i], &error);
        cr_assert(eq(int, status, WORKER_EXIT_ABSENT));
        check_refused(status, GAD_NO_ENGINE, cuda_interpreter_architectures(), "");
        cr_assert(cuda_error_is_absent(answers[i]));
    }
}

Test(card, a_device_that_is_lost_as_it_starts)
{
    cr_assert(eq(int, open_with("lost-after=3"), WORKER_EXIT_FAULT));
    cr_assert(eq(int, error.status, GAD_DEVICE_FAULT));
    cr_assert(ne(ptr, strstr(error.message, "cudaErrorUnknown"), NULL));
}

/* The double aborts when memory goes that something is on its way from or to. */
static int status_of_opening(int nth_launch)
{
    pid_t child = fork();
    if (child == 0) {
        char settings[64];
        snprintf(settings, sizeof(settings), "fail-launch=%d,seed=1,delay-us=3000", nth_launch);
        _exit(open_with(settings) != 0);
    }
    int status = -1;
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    bool has_exited = WIFEXITED(status);
    cr_assert(has_exited, "launch %d", nth_launch);
    return WEXITSTATUS(status);
}

Test(card, what_is_under_way_is_waited_for_where_a_launch_is_refused)
{
    int n_refused = 0;
    for (int nth = 1; nth < 200 && status_of_opening(nth) != 0; nth++)
        n_refused++;
    cr_assert(lt(int, 5, n_refused));
    cr_assert(lt(int, n_refused, 199));
}
