#include "daemon/worker/cuda/card_memory.h"
#include "daemon/worker/io/port.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB       UINT64_C(1048576)
#define TOTAL     (8192 * MIB) /* of the double */
#define SECOND_NS UINT64_C(1000000000)

static struct card_memory m;
static struct cuda_device device;
static struct cuda_allocations allocations;

/* In MiB; ours: of this process in the driver's list, 0: it is not in it. */
static void tell(unsigned free_mib, unsigned used_mib, unsigned reserved_mib, unsigned ours_mib)
{
    char memory[128], processes[128] = "";
    snprintf(memory, sizeof(memory), "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, TOTAL,
             free_mib * MIB, used_mib * MIB, reserved_mib * MIB);
    if (ours_mib)
        snprintf(processes, sizeof(processes), "999999:%" PRIu64 " %d:%" PRIu64, 2000 * MIB,
                 (int)getpid(), ours_mib * MIB);
    setenv("FAKE_NVML_MEMORY", memory, 1);
    setenv("FAKE_NVML_COMPUTING", processes, 1);
}

static void open_device(void)
{
    cr_assert(eq(int, cuda_device_open(0, &device), 0));
    allocations.device_bytes = 1024 * MIB;
    allocations.host_bytes = 512 * MIB;
}

static void cr_assert_adds_up(void)
{
    cr_assert(eq(u64, m.total_bytes,
                 m.free_bytes + m.reserved_bytes + m.used_by_others_bytes + m.process_bytes));
    cr_assert(
        eq(u64, m.process_bytes, m.context_bytes + m.modules_bytes + m.pool_bytes + m.other_bytes));
}

static void end(void)
{
    card_memory_end(&m);
}

/* As far as to the modules, by what the driver says. */
static void begin_by_driver(void)
{
    tell(6092, 2000, 100, 0);
    card_memory_begin(&m);
    open_device();
    tell(5692, 2400, 100, 400);
    card_memory_has_context(&m, &device);
    tell(5642, 2450, 100, 450);
    card_memory_has_modules(&m);
}

Test(memory, parts_by_the_drivers_list_add_up, .fini = end)
{
    begin_by_driver();
    tell(4616, 3476, 100, 1476);
    card_memory_has_all(&m, &allocations);
    cr_assert(eq(int, m.source, CARD_BY_DRIVER));
    cr_assert(eq(u64, m.context_bytes, 400 * MIB));
    cr_assert(eq(u64, m.modules_bytes, 50 * MIB));
    cr_assert(eq(u64, m.pool_bytes, 1024 * MIB));
    cr_assert(eq(u64, m.other_bytes, 2 * MIB));
    cr_assert(eq(u64, m.process_bytes, 1476 * MIB));
    cr_assert(eq(u64, m.used_by_others_bytes, 2000 * MIB));
    cr_assert(eq(u64, m.pinned_bytes, 512 * MIB));
    cr_assert(eq(u32, m.n_holders, 1));
    cr_assert(eq(int, m.holders[0].pid, 999999));
    cr_assert_adds_up();
}

Test(memory, what_opening_cublas_added_is_of_the_modules, .fini = end)
{
    begin_by_driver();
    tell(4618, 3474, 100, 1474);
    card_memory_has_slabs(&m);
    tell(4538, 3554, 100, 1554);
    card_memory_has_blas(&m);
    tell(4536, 3556, 100, 1556);
    card_memory_has_all(&m, &allocations);
    cr_assert(eq(u64, m.modules_bytes, 130 * MIB));
    cr_assert(eq(u64, m.pool_bytes, 1024 * MIB));
    cr_assert(eq(u64, m.other_bytes, 2 * MIB));
    cr_assert_adds_up();
}

Test(memory, without_nvml_it_is_what_is_free_less, .fini = end)
{
    void *slab, *library;
    setenv("FAKE_NVML", "absent", 1);
    card_memory_begin(&m);
    open_device();
    card_memory_has_context(&m, &device);
    card_memory_has_modules(&m);
    cr_assert(eq(int, cuda_malloc(1024 * MIB, &slab), 0));
    card_memory_has_slabs(&m);
    cr_assert(eq(int, cuda_malloc(80 * MIB, &library), 0));
    card_memory_has_blas(&m);
    card_memory_has_all(&m, &allocations);
    cr_assert(eq(int, m.source, CARD_BY_SUM));
    cr_assert(eq(u64, m.modules_bytes, 80 * MIB));
    cr_assert(eq(u64, m.process_bytes, 1104 * MIB));
    cr_assert_adds_up();
    cuda_free(library);
    cuda_free(slab);
}

Test(memory, a_process_that_is_not_in_the_list_is_the_difference, .fini = end)
{
    tell(6092, 2000, 100, 0);
    card_memory_begin(&m);
    open_device();
    tell(5692, 2400, 100, 0);
    card_memory_has_context(&m, &device);
    tell(5642, 2450, 100, 0);
    card_memory_has_modules(&m);
    tell(4616, 3476, 100, 0);
    card_memory_has_all(&m, &allocations);
    cr_assert(eq(int, m.source, CARD_BY_DIFFERENCE));
    cr_assert(eq(u64, m.context_bytes, 400 * MIB));
    cr_assert(eq(u64, m.other_bytes, 2 * MIB));
    cr_assert(eq(u64, m.used_by_others_bytes, 2000 * MIB));
    cr_assert_adds_up();
}

Test(memory, without_nvml_it_is_the_sum_of_what_is_known, .fini = end)
{
    setenv("FAKE_NVML", "absent", 1);
    card_memory_begin(&m);
    open_device();
    card_memory_has_context(&m, &device);
    card_memory_has_modules(&m);
    void *slab;
    cr_assert(eq(int, cuda_malloc(1024 * MIB, &slab), 0));
    card_memory_has_all(&m, &allocations);
    cr_assert(eq(int, m.source, CARD_BY_SUM));
    cr_assert(eq(u64, m.total_bytes, TOTAL));
    cr_assert(eq(u64, m.context_bytes, 0));
    cr_assert(eq(u64, m.process_bytes, 1024 * MIB));
    cr_assert(eq(u64, m.other_bytes, 0));
    cr_assert(eq(u32, m.n_holders, 0));
    cr_assert_adds_up();
    cuda_free(slab);
}

Test(memory, a_part_of_a_device_is_not_confused_with_the_device, .fini = end)
{
    setenv("FAKE_NVML_MEMORY", "85899345920 80000000000 5000000000 899345920", 1);
    card_memory_begin(&m);
    open_device();
    card_memory_has_context(&m, &device);
    cr_assert(eq(int, m.source, CARD_BY_SUM));
    cr_assert(eq(u64, m.total_bytes, TOTAL));
}

Test(memory, figures_that_cannot_be_right_are_not_believed, .fini = end)
{
    tell(6092, 2000, 100, 0);
    card_memory_begin(&m);
    open_device();
    tell(5692, 2400, 100, 400);
    card_memory_has_context(&m, &device);
    card_memory_has_modules(&m);
    card_memory_has_all(&m, &allocations); /* less than the pool alone */
    cr_assert(eq(int, m.source, CARD_BY_SUM));
    cr_assert(eq(u64, m.process_bytes, 1024 * MIB));
    cr_assert_adds_up();
}

Test(memory, a_refresh_asks_again_but_not_all_the_time, .fini = end)
{
    tell(6092, 2000, 100, 0);
    card_memory_begin(&m);
    open_device();
    tell(5692, 2400, 100, 400);
    card_memory_has_context(&m, &device);
    card_memory_has_modules(&m);
    tell(4616, 3476, 100, 1476);
    card_memory_has_all(&m, &allocations);
    tell(4516, 3576, 100, 1576);
    m.read_ns = 0; /* long ago */
    uint64_t process = 0, unused = 0, begin_ns = clock_ns();
    while (process != 1576 * MIB && clock_ns() - begin_ns < 20 * SECOND_NS)
        card_memory_refresh(&m, &process, &unused);
    cr_assert(eq(u64, process, 1576 * MIB));
    cr_assert(eq(u64, unused, 4516 * MIB));
    cr_assert(eq(u64, m.used_by_others_bytes, 2000 * MIB));
    uint64_t read_ns = m.read_ns;
    tell(4416, 3676, 100, 1676);
    card_memory_refresh(&m, &process, &unused); /* within half a second it does not ask again */
    if (clock_ns() - read_ns < SECOND_NS / 2)
        cr_assert(eq(u64, process, 1576 * MIB));
}

/* A driver that takes its time keeps nobody waiting; what it said is told later. */
Test(memory, a_driver_that_is_slow_is_not_waited_for, .fini = end)
{
    begin_by_driver();
    tell(4616, 3476, 100, 1476);
    card_memory_has_all(&m, &allocations);
    tell(4516, 3576, 100, 1576);
    setenv("FAKE_NVML_SLOW_MS", "500", 1);
    m.read_ns = 0;
    uint64_t process = 0, unused = 0, begin_ns = clock_ns();
    card_memory_refresh(&m, &process, &unused);
    cr_assert(lt(u64, clock_ns() - begin_ns, SECOND_NS / 2));
    cr_assert(eq(u64, process, 1476 * MIB));
    while (process != 1576 * MIB && clock_ns() - begin_ns < 20 * SECOND_NS)
        card_memory_refresh(&m, &process, &unused);
    cr_assert(eq(u64, process, 1576 * MIB));
    cr_assert(ge(u64, clock_ns() - begin_ns, SECOND_NS / 2));
}

Test(memory, holders_are_told_with_their_bytes, .fini = end)
{
    char text[200];
    tell(6092, 2000, 100, 0);
    card_memory_begin(&m);
    open_device();
    snprintf(text, sizeof(text), "999999:5000 %d:77 999998:-", (int)getpid());
    setenv("FAKE_NVML_COMPUTING", text, 1);
    card_memory_has_context(&m, &device);
    card_memory_holders(&m, text, sizeof(text));
    cr_assert(eq(str, text,
                 (char *)"pid 999999 (name not readable) 5000 bytes, pid 999998 (name not "
                         "readable)"));
    char little[20];
    card_memory_holders(&m, little, sizeof(little));
    cr_assert(eq(u64, strlen(little), sizeof(little) - 1));
}
