/* The runner of translated kernels finds every kind of fault: those of planted.ptx, each by its
 * kind and the first thread that commits it; and nothing in the kernel without one, whose result is
 * right.
 */
#include "tests/unit/kernels/ptx/ptx_block.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#define N_THREADS 32

void planted_planted(void *const *arguments);
extern const uint32_t planted_planted_shared_bytes;
extern const struct ptx_buffer planted_tables[];
extern const unsigned planted_n_tables;

/* By the kernel's number of the fault. */
static const struct {
    const char *name;
    enum ptx_fault fault;
    uint32_t thread;
} plants[] = {
    {"sound", PTX_FINE, 0},
    {"load misaligned", PTX_MISALIGNED, 0},
    {"store misaligned", PTX_MISALIGNED, 0},
    {"load beyond", PTX_OUT_OF_BOUNDS, 0},
    {"store beyond", PTX_OUT_OF_BOUNDS, 31},
    {"load unwritten", PTX_UNWRITTEN, 0},
    {"shared misaligned", PTX_MISALIGNED, 0},
    {"shared beyond", PTX_OUT_OF_BOUNDS, 31},
    {"shared unwritten", PTX_UNWRITTEN, 0},
    {"leaves", PTX_UNEQUAL_BARRIERS, 3},
    {"waits elsewhere", PTX_UNEQUAL_BARRIERS, 3},
    {"write after read", PTX_RACE, 1},
    {"read after write", PTX_RACE, 1},
    {"write after write", PTX_RACE, 1},
    {"store to a table", PTX_READ_ONLY, 0},
    {"generic store beyond", PTX_OUT_OF_BOUNDS, 31},
    {"generic read after write", PTX_RACE, 1},
    {"atomic after write", PTX_RACE, 1},
    {"read after atomic", PTX_RACE, 0},
    {"read of what is copied", PTX_UNWRITTEN, 0},
    {"read of the newest group", PTX_UNWRITTEN, 0},
    {"write of what is copied", PTX_RACE, 0},
    {"copy that nobody awaits", PTX_NOT_AWAITED, 0},
    {"sound, with copies and atomics", PTX_FINE, 0},
};

static uint32_t result[N_THREADS];
static bool is_written[sizeof(result)];

static struct ptx_report run(uint32_t plant, uint32_t n_blocks)
{
    const struct ptx_buffer buffers[] = {{result, sizeof(result), is_written}, planted_tables[0]};
    uint32_t *out = result;
    void *arguments[] = {&out, &plant};
    struct ptx_report report;
    memset(is_written, 0, sizeof(is_written));
    int r = ptx_run(
        &(struct ptx_launch){
            .kernel = planted_planted,
            .shared_bytes = planted_planted_shared_bytes,
            .arguments = arguments,
            .n_blocks = {n_blocks, 1},
            .n_threads = N_THREADS,
            .buffers = buffers,
            .n_buffers = 2,
        },
        &report);
    cr_assert(eq(int, r, 0));
    cr_assert(eq(u32, planted_n_tables, 1));
    return report;
}

Test(ptx_block, finds_every_planted_fault)
{
    for (uint32_t i = 0; i < sizeof(plants) / sizeof(plants[0]); i++) {
        struct ptx_report report = run(i, 1);
        cr_assert(eq(int, (int)report.fault, (int)plants[i].fault), "%s", plants[i].name);
        cr_assert(eq(u32, report.thread, plants[i].thread), "%s", plants[i].name);
    }
}

Test(ptx_block, runs_threads_across_barriers_block_by_block)
{
    struct ptx_report report = run(0, 3);
    cr_assert(eq(int, (int)report.fault, PTX_FINE));
    for (uint32_t i = 0; i < N_THREADS; i++)
        cr_assert(eq(u32, result[i], (i + 1) % N_THREADS));
    for (uint32_t i = 0; i < sizeof(is_written); i++)
        cr_assert(is_written[i]);
}

Test(ptx_block, brings_copies_and_adds_for_all_threads)
{
    struct ptx_report report = run(sizeof(plants) / sizeof(plants[0]) - 1, 2);
    cr_assert(eq(int, (int)report.fault, PTX_FINE));
    for (uint32_t i = 0; i < N_THREADS; i++)
        cr_assert(eq(u32, result[i], 1 + N_THREADS));
}
