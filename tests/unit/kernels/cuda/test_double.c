/* The test double itself: what a device would compute wrong, or only now and then, it refuses
 * always. Each refusal is looked for in a child, by its words. */
#include "tests/unit/kernels/cuda/card_rig.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct card_rig rig;

static void open_rig(void)
{
    card_rig_open(&rig, 0);
}

/* A kernel that ends when the program lets it, and says when it runs. */
static sem_t gate, there;

static void wait_at_gate(char *slot, const void *arguments)
{
    sem_post(&there);
    sem_wait(&gate);
}

static void launch_gate(cuda_stream stream)
{
    const struct cuda_host_launch launch = {
        .kernel = wait_at_gate, .device_slot = rig.device_slot, .slot_bytes = RIG_BYTES};
    MUST(cuda_host_launch(&launch, stream));
}

static void kernel_without_copy_waited(void)
{
    open_rig();
    MUST(cuda_copy_to_device(rig.device_slot, rig.slot, 100, rig.to_device));
    MUST(card_rig_launch(&rig, rig.compute, 100, 1));
}

Test(double, refuses_a_kernel_that_does_not_wait_for_its_copy)
{
    dies_saying("a kernel (stream 1) reads 100 bytes", kernel_without_copy_waited);
}

static void copy_back_without_kernel_waited(void)
{
    open_rig();
    MUST(card_rig_in(&rig, 100));
    MUST(card_rig_launch(&rig, rig.compute, 100, 1));
    MUST(cuda_stream_wait(rig.from_device, rig.copied));
    MUST(cuda_copy_from_device(rig.slot, rig.device_slot, 100, rig.from_device));
}

Test(double, refuses_a_copy_back_that_does_not_wait_for_the_kernel)
{
    dies_saying("a copy from the device (stream 2) reads 100 bytes",
                copy_back_without_kernel_waited);
}

static void overwrite_while_kernel_reads(void)
{
    open_rig();
    MUST(card_rig_in(&rig, 100));
    MUST(card_rig_launch(&rig, rig.compute, 100, 1));
    MUST(cuda_copy_to_device(rig.device_slot, rig.slot, 100, rig.to_device));
}

Test(double, refuses_to_refill_a_slot_that_a_kernel_works_on)
{
    dies_saying("a copy to the device (stream 0) overwrites", overwrite_while_kernel_reads);
}

static void copy_into_source_of_copy(void)
{
    open_rig();
    MUST(cuda_copy_to_device(rig.device_slot, rig.slot, 100, rig.to_device));
    char *elsewhere = (char *)rig.device_slot + 4096;
    MUST(cuda_copy_from_device(rig.slot + 50, elsewhere, 10, rig.from_device));
}

Test(double, refuses_to_overwrite_pinned_memory_that_a_copy_reads)
{
    dies_saying("that a copy to the device (stream 0) reads", copy_into_source_of_copy);
}

/* Three rows, 40 bytes apart, and three between them that begin so far behind. */
static void copy_rows_beside(size_t offset)
{
    open_rig();
    char *elsewhere = (char *)rig.device_slot + 4096;
    MUST(cuda_copy_to_device(elsewhere, rig.slot + 200, 100, rig.from_device));
    MUST(cuda_copy_rows_to_device(rig.device_slot, rig.slot, 40, 10, 3, rig.to_device));
    MUST(cuda_copy_rows_from_device(rig.slot + offset, 40, elsewhere, 10, 3, rig.from_device));
    MUST(cuda_event_record(rig.back, rig.from_device));
    MUST(cuda_event_wait(rig.back));
}

static void copy_rows_into_each_other(void)
{
    copy_rows_beside(9);
}

Test(double, lets_a_copy_of_rows_have_what_lies_between_others)
{
    copy_rows_beside(10);
}

Test(double, refuses_to_overwrite_rows_that_a_copy_reads)
{
    dies_saying("that a copy to the device (stream 0) reads", copy_rows_into_each_other);
}

static void wait_for_an_older_recording(void)
{
    open_rig();
    MUST(cuda_event_record(rig.copied, rig.to_device));
    MUST(cuda_stream_wait(rig.compute, rig.copied));
    MUST(cuda_copy_to_device(rig.device_slot, rig.slot, 100, rig.to_device));
    MUST(cuda_event_record(rig.copied, rig.to_device));
    MUST(card_rig_launch(&rig, rig.compute, 100, 1));
}

Test(double, takes_an_event_as_it_was_recorded_when_it_was_waited_for)
{
    dies_saying("a kernel (stream 1) reads", wait_for_an_older_recording);
}

static void end_known_by_luck(void)
{
    open_rig();
    MUST(cuda_copy_to_device(rig.device_slot, rig.slot, 100, rig.to_device));
    /* It has run long since, but the program cannot know. */
    launch_gate(rig.to_device);
    sem_wait(&there);
    MUST(card_rig_launch(&rig, rig.compute, 100, 1));
}

Test(double, takes_luck_in_time_for_nothing)
{
    sem_init(&there, 0, 0);
    sem_init(&gate, 0, 1);
    dies_saying("a kernel (stream 1) reads", end_known_by_luck);
}

Test(double, lets_pass_what_the_program_has_waited_for)
{
    card_rig_set("seed=9");
    open_rig();
    memset(rig.slot, 1, RIG_BYTES);
    MUST(card_rig_tile(&rig, RIG_BYTES, 1)); /* stands for the copy in and the kernel too */
    MUST(card_rig_launch(&rig, rig.to_device, RIG_BYTES, 1));
    MUST(cuda_event_record(rig.copied, rig.to_device));
    MUST(cuda_event_wait(rig.copied));
    MUST(card_rig_tile(&rig, RIG_BYTES, 1));
    cr_assert(eq(int, rig.slot[RIG_BYTES - 1], 3));
    card_rig_close(&rig);
}

static void late_fault_behind_many_spans(void)
{
    open_rig();
    char *device = rig.device_slot;
    for (size_t i = 0; i < 3000; i++)
        MUST(cuda_copy_to_device(device + 20 * i, rig.slot + 20 * i, 10, rig.to_device));
    MUST(card_rig_launch(&rig, rig.compute, 20, 1));
}

Test(double, keeps_what_it_knows_of_many_pieces)
{
    dies_saying("a kernel (stream 1) reads 10 bytes", late_fault_behind_many_spans);
}

Test(double, forgets_pieces_that_the_program_has_waited_for)
{
    card_rig_set("");
    open_rig();
    char *device = rig.device_slot;
    for (size_t round = 0; round < 4; round++) {
        for (size_t i = 0; i < 1000; i++)
            MUST(
                cuda_copy_to_device(device + 20 * i + round, rig.slot + 20 * i, 10, rig.to_device));
        MUST(cuda_event_record(rig.copied, rig.to_device));
        MUST(cuda_event_wait(rig.copied));
    }
    MUST(card_rig_launch(&rig, rig.compute, RIG_BYTES, 1));
    MUST(card_rig_out(&rig, RIG_BYTES));
    MUST(cuda_event_wait(rig.back));
    card_rig_close(&rig);
}

static void write_to_source_in_flight(void)
{
    open_rig();
    launch_gate(rig.to_device);
    MUST(cuda_copy_to_device(rig.device_slot, rig.slot, 100, rig.to_device));
    MUST(cuda_event_record(rig.copied, rig.to_device));
    rig.slot[0] = 1;
    sem_post(&gate);
    MUST(cuda_event_wait(rig.copied));
}

Test(double, sees_a_slot_refilled_before_its_copy_ran)
{
    sem_init(&there, 0, 0);
    sem_init(&gate, 0, 0);
    dies_saying("writes to pinned memory", write_to_source_in_flight);
}

static void copy_from_plain_memory(void)
{
    open_rig();
    static char plain[100];
    MUST(cuda_copy_to_device(rig.device_slot, plain, sizeof plain, rig.to_device));
}

Test(double, refuses_memory_that_is_not_pinned)
{
    dies_saying("are not pinned", copy_from_plain_memory);
}

static void copy_beyond_slab(void)
{
    open_rig();
    MUST(cuda_copy_to_device((char *)rig.device_slot + RIG_BYTES - 50, rig.slot, 100,
                             rig.to_device));
}

Test(double, refuses_device_memory_that_is_not_there)
{
    dies_saying("are not of one piece of device memory", copy_beyond_slab);
}

static void copy_to_read_only(void)
{
    open_rig();
    void *pages = aligned_alloc(4096, 4096);
    MUST(cuda_host_register(pages, 4096, true));
    MUST(cuda_copy_from_device(pages, rig.device_slot, 100, rig.from_device));
}

Test(double, refuses_to_write_to_what_is_registered_for_reading)
{
    dies_saying("is registered for reading only", copy_to_read_only);
}

static void unregister_in_flight(void)
{
    open_rig();
    void *pages = aligned_alloc(4096, 4096);
    MUST(cuda_host_register(pages, 4096, false));
    MUST(cuda_copy_from_device(pages, rig.device_slot, 100, rig.from_device));
    MUST(cuda_host_unregister(pages));
}

Test(double, refuses_to_let_go_of_pages_that_are_copied)
{
    dies_saying("cudaHostUnregister: nobody has waited", unregister_in_flight);
}

/* Sanitizers have their own words for it, and do not die of the signal. */
static void follow_device_address(void)
{
    open_rig();
    dprintf(STDERR_FILENO, "before");
    *(volatile char *)rig.device_slot = 1;
    dprintf(STDERR_FILENO, "behind");
    _exit(0);
}

Test(double, kills_a_host_that_follows_a_device_address)
{
    dies_saying("before", follow_device_address);
}

static void call_without_device(void)
{
    void *memory = NULL;
    MUST(cuda_malloc(100, &memory));
}

Test(double, refuses_a_thread_that_chose_no_device)
{
    dies_saying("would make a second context", call_without_device);
}

static void allocate_after_baseline(void)
{
    open_rig(); /* 3 streams, 3 events, 2 slabs */
    cuda_event event;
    MUST(cuda_event_new(true, &event));
}

Test(double, refuses_to_allocate_after_the_baseline)
{
    card_rig_set("allocations=8");
    dies_saying("cudaEventCreateWithFlags allocates after the baseline", allocate_after_baseline);
}

Test(double, refuses_a_setting_that_does_not_exist)
{
    card_rig_set("devcies=2");
    dies_saying("there is no key devcies", open_rig);
}

static void leave_holes(char *slot, const void *arguments)
{
    slot[64] = 1;
}

Test(double, gives_garbage_where_a_kernel_writes_nothing)
{
    card_rig_set("");
    open_rig();
    const struct cuda_host_launch launch = {.kernel = leave_holes,
                                            .device_slot = rig.device_slot,
                                            .slot_bytes = RIG_BYTES,
                                            .read_bytes = 64,
                                            .write_offset = 32,
                                            .write_bytes = 64};
    MUST(card_rig_in(&rig, 64));
    MUST(cuda_host_launch(&launch, rig.compute));
    MUST(card_rig_out(&rig, 96));
    MUST(cuda_event_wait(rig.back));
    cr_assert(eq(int, rig.slot[63], 0)); /* it reads that, so it is left */
    cr_assert(eq(int, rig.slot[64], 1));
    cr_assert(eq(int, (unsigned char)rig.slot[95], 0xA5));
    card_rig_close(&rig);
}

Test(double, counts_operations_that_run_at_once)
{
    sem_init(&there, 0, 0);
    sem_init(&gate, 0, 0);
    card_rig_set("");
    open_rig();
    launch_gate(rig.compute);
    launch_gate(rig.to_device);
    launch_gate(rig.from_device);
    for (int i = 0; i < 3; i++)
        sem_wait(&there);
    cr_assert(eq(u64, double_stats().most_at_once, 3));
    cr_assert(eq(u64, double_stats().n_overlapped, 2));
    for (int i = 0; i < 3; i++)
        sem_post(&gate);
    card_rig_close(&rig);
}

Test(double, runs_one_stream_in_order)
{
    card_rig_set("seed=5");
    open_rig();
    MUST(cuda_copy_to_device(rig.device_slot, rig.slot, RIG_BYTES, rig.compute));
    for (int i = 0; i < 30; i++)
        MUST(card_rig_launch(&rig, rig.compute, RIG_BYTES, 1));
    MUST(cuda_copy_from_device(rig.slot, rig.device_slot, RIG_BYTES, rig.compute));
    MUST(cuda_event_record(rig.back, rig.compute));
    MUST(cuda_event_wait(rig.back));
    cr_assert(eq(int, rig.slot[RIG_BYTES / 2], 30));
    cr_assert(eq(u64, double_stats().most_at_once, 1));
    card_rig_close(&rig);
}
