/* kernels/cuda/runtime.c on the test double: a tile's way, what is counted, what is refused, and
 * what is left after a refusal. */
#include "tests/unit/kernels/cuda/card_rig.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include <cuda_runtime_api.h>

static struct card_rig rig;

static void check_tile(void)
{
    memset(rig.slot, 7, RIG_BYTES);
    MUST(card_rig_tile(&rig, RIG_BYTES, 5));
    for (size_t i = 0; i < RIG_BYTES; i += 997)
        cr_assert(eq(int, rig.slot[i], 12));
}

Test(runtime, opens_a_device_and_says_what_it_is)
{
    card_rig_set("devices=3,device_bytes=9000000000,capability=86");
    int n = 0;
    cr_assert(eq(int, cuda_device_count(&n), 0));
    cr_assert(eq(int, n, 3));
    card_rig_open(&rig, 2);
    struct cuda_device *d = &rig.device;
    cr_assert(eq(str, (char *)d->name, (char *)"Test Double"));
    cr_assert(eq(str, (char *)d->uuid, (char *)"GPU-20212223-2425-2627-2829-2a2b2c2d2e2f"));
    cr_assert(eq(str, (char *)d->pci, (char *)"0000:3d:00.0"));
    cr_assert(eq(int, d->index, 2));
    cr_assert(eq(int, d->major * 10 + d->minor, 86));
    cr_assert(eq(u64, d->total_bytes, 9000000000));
    cr_assert(eq(int, d->driver_version, 13000));
    cr_assert(eq(int, d->runtime_version, 13000));
    card_rig_close(&rig);
}

Test(runtime, carries_a_tile_there_and_back)
{
    card_rig_set("seed=3");
    card_rig_open(&rig, 0);
    for (int i = 0; i < 20; i++)
        check_tile();
    card_rig_close(&rig);
}

Test(runtime, counts_what_allocates_and_what_is_held)
{
    card_rig_set("");
    card_rig_open(&rig, 0);
    void *more = NULL;
    MUST(cuda_malloc(1000, &more));
    struct cuda_allocations a = cuda_allocations();
    cr_assert(eq(u64, a.n_device, 2));
    cr_assert(eq(u64, a.n_host, 1));
    cr_assert(eq(u64, a.device_bytes, RIG_BYTES + 1000));
    cr_assert(eq(u64, a.host_bytes, RIG_BYTES));
    cuda_free(more);
    for (int i = 0; i < 5; i++)
        check_tile();
    a = cuda_allocations();
    cr_assert(eq(u64, a.n_device, 2));
    cr_assert(eq(u64, a.device_bytes, RIG_BYTES));
    card_rig_close(&rig);
    a = cuda_allocations();
    cr_assert(eq(u64, a.device_bytes + a.host_bytes, 0));
    cr_assert(eq(u64, double_stats().device_bytes, 0));
}

Test(runtime, counts_a_refused_allocation_and_takes_its_error_back)
{
    card_rig_set("fail-malloc=2,fail-host-alloc=2");
    card_rig_open(&rig, 0);
    void *more = NULL;
    const int error = cuda_malloc(1000, &more);
    cr_assert(eq(int, error, cudaErrorMemoryAllocation));
    cr_assert(eq(int, cuda_host_alloc(1000, &more), cudaErrorMemoryAllocation));
    cr_assert(eq(ptr, more, NULL));
    cr_assert(not(cuda_error_is_sticky(error)));
    cr_assert(not(cuda_error_is_absent(error)));
    cr_assert(eq(int, cudaGetLastError(), cudaSuccess));
    cr_assert(eq(u64, cuda_allocations().n_device, 2));
    cr_assert(eq(u64, cuda_allocations().n_host, 2));
    cr_assert(eq(u64, cuda_allocations().device_bytes, RIG_BYTES));
    check_tile();
    card_rig_close(&rig);
}

Test(runtime, has_no_more_memory_than_the_device)
{
    card_rig_set("device_bytes=10000000,used_bytes=2000000,context_bytes=1000000");
    card_rig_open(&rig, 0);
    uint64_t free_bytes = 0, total_bytes = 0;
    MUST(cuda_memory_info(&free_bytes, &total_bytes));
    cr_assert(eq(u64, total_bytes, 10000000));
    cr_assert(eq(u64, free_bytes, 7000000 - RIG_BYTES));
    void *more = NULL;
    cr_assert(eq(int, cuda_malloc(7000000, &more), cudaErrorMemoryAllocation));
    MUST(cuda_malloc(6000000, &more));
    cuda_free(more);
    card_rig_close(&rig);
}

Test(runtime, registers_pages_once_within_the_budget_and_counts_them_apart)
{
    card_rig_set("register_bytes=8192");
    card_rig_open(&rig, 0);
    char *pages = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(ne(ptr, pages, MAP_FAILED));
    MUST(cuda_host_register(pages, 4096, false));
    cr_assert(
        eq(int, cuda_host_register(pages, 4096, false), cudaErrorHostMemoryAlreadyRegistered));
    cr_assert(eq(int, cuda_host_register(pages + 4096, 8192, false), cudaErrorMemoryAllocation));
    struct cuda_allocations a = cuda_allocations();
    cr_assert(eq(u64, a.n_registered, 3));
    cr_assert(eq(u64, a.registered_bytes, 4096));
    cr_assert(eq(u64, a.n_host, 1));
    memset(pages, 1, 4096);
    MUST(cuda_copy_to_device(rig.device_slot, pages, 4096, rig.to_device));
    MUST(cuda_event_record(rig.copied, rig.to_device));
    MUST(cuda_event_wait(rig.copied));
    MUST(cuda_host_unregister(pages));
    cr_assert(eq(int, cuda_host_unregister(pages), cudaErrorHostMemoryNotRegistered));
    cr_assert(eq(u64, cuda_allocations().registered_bytes, 0));
    munmap(pages, 16384);
    cr_assert(eq(int, cuda_host_register(pages, 4096, false), cudaErrorInvalidValue));
    card_rig_close(&rig);
}

static void *use_from_thread(void *argument)
{
    check_tile();
    return argument;
}

Test(runtime, binds_every_thread_to_the_opened_device)
{
    card_rig_set("devices=2");
    card_rig_open(&rig, 1);
    pthread_t thread;
    cr_assert(eq(int, pthread_create(&thread, NULL, use_from_thread, NULL), 0));
    cr_assert(eq(int, pthread_join(thread, NULL), 0));
    card_rig_close(&rig);
}

static void check_absent(int want)
{
    int n = 7;
    struct cuda_device device;
    const int error = cuda_device_count(&n);
    cr_assert(eq(int, error, want));
    cr_assert(eq(int, n, 7));
    cr_assert(cuda_error_is_absent(error));
    cr_assert(eq(int, cuda_device_open(0, &device), want));
}

Test(runtime, says_that_there_is_no_driver)
{
    card_rig_set("no-driver");
    int driver = 1, runtime = 1;
    cuda_versions(&driver, &runtime);
    cr_assert(eq(int, driver, 0));
    cr_assert(eq(int, runtime, 13000));
    check_absent(cudaErrorInsufficientDriver);
}

Test(runtime, says_that_the_driver_is_too_old)
{
    card_rig_set("old-driver");
    int driver = 0, runtime = 0;
    cuda_versions(&driver, &runtime);
    cr_assert(eq(int, driver, 11040));
    check_absent(cudaErrorInsufficientDriver);
}

Test(runtime, says_that_there_is_no_device)
{
    card_rig_set("devices=0");
    check_absent(cudaErrorNoDevice);
}

Test(runtime, refuses_an_index_that_does_not_exist)
{
    card_rig_set("devices=2");
    const int error = cuda_device_open(2, &rig.device);
    cr_assert(eq(int, error, cudaErrorInvalidDevice));
    cr_assert(cuda_error_is_absent(error));
}

Test(runtime, measures_the_time_between_events)
{
    card_rig_set("slow-link=10000000");
    card_rig_open(&rig, 0);
    uint64_t ns = 0;
    MUST(cuda_event_record(rig.copied, rig.to_device));
    MUST(cuda_copy_to_device(rig.device_slot, rig.slot, RIG_BYTES, rig.to_device));
    MUST(cuda_event_record(rig.back, rig.to_device));
    MUST(cuda_event_wait(rig.back));
    MUST(cuda_event_elapsed_ns(rig.copied, rig.back, &ns));
    cr_assert(ge(u64, ns, 6500000)); /* 65536 bytes at 10 MB/s */
    cr_assert(eq(int, cuda_event_elapsed_ns(rig.computed, rig.back, &ns),
                 cudaErrorInvalidResourceHandle));
    card_rig_close(&rig);
}

Test(runtime, knows_the_names_of_errors)
{
    cr_assert(eq(str, (char *)cuda_error_name(700), (char *)"cudaErrorIllegalAddress"));
    cr_assert(ne(str, (char *)cuda_error_text(2), (char *)""));
}

Test(runtime, tells_lost_from_absent_from_harmless)
{
    static const int sticky[] = {214, 220, 226, 700, 702, 710, 714,
                                 715, 716, 717, 718, 719, 721, 999};
    static const int absent[] = {3, 34, 35, 46, 100, 101, 209, 222, 304, 802, 803, 804};
    static const int harmless[] = {0, 1, 2, 9, 400, 600, 701, 712, 713, 801};
    for (size_t i = 0; i < sizeof sticky / sizeof *sticky; i++)
        cr_assert(cuda_error_is_sticky(sticky[i]), "%d", sticky[i]);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        cr_assert(cuda_error_is_absent(absent[i]), "%d", absent[i]);
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        cr_assert(not(cuda_error_is_sticky(harmless[i]) || cuda_error_is_absent(harmless[i])), "%d",
                  harmless[i]);
}
