/* The model of time (tests/double/timeline.c): sequences whose time is known, on a machine whose
 * numbers are the model's own; and what a program does wrong shows in the time. */
#include "tests/double/timeline.h"
#include "tests/unit/kernels/cuda/card_rig.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define N_TILES 8
#define LARGE   ((size_t)8 << 20)

static const struct timeline_machine *h100;
static struct card_rig rig;
static cuda_event begin, end;
static char *device, *pinned;

/* No pace: the clock is of calls and work alone. */
static void open_machine(void)
{
    card_rig_set("machine=h100");
    h100 = timeline_find("h100");
    card_rig_open(&rig, 0);
    MUST(cuda_event_new(false, &begin));
    MUST(cuda_event_new(false, &end));
    void *memory;
    MUST(cuda_malloc(2 * LARGE, &memory));
    device = memory;
    MUST(cuda_host_alloc(2 * LARGE, &memory));
    pinned = memory;
}

static uint64_t elapsed_ns(void)
{
    uint64_t ns = 0;
    MUST(cuda_event_wait(end));
    MUST(cuda_event_elapsed_ns(begin, end, &ns));
    return ns;
}

static bool is_about(uint64_t ns, uint64_t expected)
{
    return ns + expected / 50 >= expected && ns <= expected + expected / 50;
}

Test(timeline, a_copy_takes_its_bytes_and_an_overhead)
{
    open_machine();
    const uint64_t expected = (uint64_t)((double)LARGE / 55e9 * 1e9) + h100->copy_ns;
    MUST(cuda_event_record(begin, rig.to_device));
    MUST(cuda_copy_to_device(device, pinned, LARGE, rig.to_device));
    MUST(cuda_event_record(end, rig.to_device));
    uint64_t ns = elapsed_ns();
    cr_expect(is_about(ns, expected), "%llu ns, not %llu", (unsigned long long)ns,
              (unsigned long long)expected);
}

/* So many tiles there and back. `back`: the stream of the copies back. */
static uint64_t both_ways_ns(cuda_stream back)
{
    MUST(cuda_event_record(begin, rig.to_device));
    for (unsigned i = 0; i < N_TILES; i++) {
        MUST(cuda_copy_to_device(device, pinned, LARGE, rig.to_device));
        MUST(cuda_event_record(rig.copied, rig.to_device));
        MUST(cuda_stream_wait(back, rig.copied));
        MUST(cuda_copy_from_device(pinned + LARGE, device, LARGE, back));
        MUST(cuda_event_record(rig.back, back));
        MUST(cuda_stream_wait(rig.to_device, rig.back));
    }
    MUST(cuda_event_record(end, back));
    return elapsed_ns();
}

/* Two places on the device, in turns: each waits only for the one before the last. */
static uint64_t overlapped_ns(cuda_stream back)
{
    cuda_event gone[2], come[2];
    for (unsigned i = 0; i < 2; i++) {
        MUST(cuda_event_new(false, &gone[i]));
        MUST(cuda_event_new(false, &come[i]));
    }
    MUST(cuda_event_record(begin, rig.to_device));
    for (unsigned i = 0; i < N_TILES; i++) {
        char *place = device + i % 2 * LARGE;
        if (i >= 2)
            MUST(cuda_stream_wait(rig.to_device, gone[i % 2]));
        MUST(cuda_copy_to_device(place, pinned, LARGE, rig.to_device));
        MUST(cuda_event_record(come[i % 2], rig.to_device));
        MUST(cuda_stream_wait(back, come[i % 2]));
        MUST(cuda_copy_from_device(pinned + LARGE, place, LARGE, back));
        MUST(cuda_event_record(gone[i % 2], back));
    }
    MUST(cuda_event_record(end, back));
    uint64_t ns = elapsed_ns();
    for (unsigned i = 0; i < 2; i++) {
        cuda_event_free(gone[i]);
        cuda_event_free(come[i]);
    }
    return ns;
}

Test(timeline, both_ways_of_the_link_work_at_once)
{
    open_machine();
    const uint64_t one = timeline_copy_ns(h100, TIMELINE_TO_DEVICE, LARGE);
    uint64_t ns = overlapped_ns(rig.from_device);
    cr_expect(is_about(ns, (N_TILES + 1) * one), "%.2f copies", (double)ns / (double)one);
}

Test(timeline, one_stream_for_both_ways_shows)
{
    open_machine();
    const uint64_t one = timeline_copy_ns(h100, TIMELINE_TO_DEVICE, LARGE);
    uint64_t ns = overlapped_ns(rig.to_device);
    cr_expect(is_about(ns, 2 * N_TILES * one), "%.2f copies", (double)ns / (double)one);
}

Test(timeline, one_place_on_the_device_shows)
{
    open_machine();
    const uint64_t one = timeline_copy_ns(h100, TIMELINE_TO_DEVICE, LARGE);
    uint64_t ns = both_ways_ns(rig.from_device);
    cr_expect(is_about(ns, 2 * N_TILES * one), "%.2f copies", (double)ns / (double)one);
}

/* The host gives them more slowly than they are copied. */
Test(timeline, many_small_copies_take_what_the_calls_take)
{
    open_machine();
    const uint64_t slow_ns = h100->copy_ns > h100->call_ns ? h100->copy_ns : h100->call_ns;
    MUST(cuda_event_record(begin, rig.to_device));
    for (unsigned i = 0; i < 1000; i++)
        MUST(cuda_copy_to_device(device, pinned, 64, rig.to_device));
    MUST(cuda_event_record(end, rig.to_device));
    uint64_t ns = elapsed_ns();
    cr_expect(is_about(ns, 1000 * slow_ns), "%llu ns", (unsigned long long)ns);
}

struct kernel_case {
    struct timeline_work work;
    double seconds; /* beside the launch */
};

static const struct kernel_case kernels[] = {
    {{.n_bytes = 3350000000}, 1e-3},
    {{.n_blocks = 132, .instructions = 33.5e9}, 1e-3},
    {{.n_blocks = 64, .instructions = 33.5e9}, 1e-3 * 132 / 64}, /* too few of them */
    {{.n_blocks = 133, .instructions = 33.5e9}, 2e-3 * 132 / 133},
    {{.n_bytes = 3350000000, .n_blocks = 132, .instructions = 1e9}, 1e-3},
    {{.product_float32 = 67e9}, 1e-3},
    {{.product_tf32 = 400e9}, 1e-3},
    {{.product_float64 = 60e9}, 1e-3},
};

Test(timeline, kernels_take_the_longer_of_memory_and_arithmetic)
{
    const struct timeline_machine *machine = timeline_find("h100");
    for (unsigned i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        uint64_t ns = timeline_kernel_ns(machine, &kernels[i].work) - machine->launch_ns;
        cr_expect(is_about(ns, (uint64_t)(kernels[i].seconds * 1e9)), "%u: %llu ns", i,
                  (unsigned long long)ns);
    }
}

static void open_unknown(void)
{
    card_rig_set("machine=z80");
    card_rig_open(&rig, 0);
}

Test(timeline, a_machine_that_is_not_known_is_refused)
{
    dies_saying("there is no machine z80", open_unknown);
}
