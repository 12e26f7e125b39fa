/* Threads as fibres, and what is noted for each byte of shared memory: see ptx_block.h.
 *
 * A byte of shared memory knows who wrote it and who read it since which barrier. A store races
 * with a load or store of another thread since the last barrier, a load with another's store. Two
 * readers are remembered as SEVERAL, which is another thread than any.
 */
#include "tests/unit/kernels/ptx/ptx_block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STACK_BYTES (UINT32_C(64) << 10)
#define SEVERAL     UINT32_MAX

_Thread_local bool ptx_model_is_rough;

/* Epochs count a block's barriers from 1: 0 is never. */
struct noted {
    uint32_t writer, write_epoch, reader, read_epoch;
};

struct fibre {
    ucontext_t context;
    bool has_ended;
    int barrier; /* line */
};

static struct {
    const struct ptx_launch *launch;
    struct ptx_report report;
    struct fibre *fibres;
    char *stacks, *shared;
    struct noted *noted;
    ucontext_t scheduler;
    uint32_t thread, epoch, block[2];
} now;

uint32_t ptx_tid_x(void)
{
    return now.thread;
}
uint32_t ptx_ntid_x(void)
{
    return now.launch->n_threads;
}
uint32_t ptx_ctaid_x(void)
{
    return now.block[0];
}
uint32_t ptx_ctaid_y(void)
{
    return now.block[1];
}

static void note(enum ptx_fault fault, uintptr_t address, int line)
{
    now.report = (struct ptx_report){.fault = fault,
                                     .block = {now.block[0], now.block[1]},
                                     .thread = now.thread,
                                     .address = address,
                                     .line = line};
}

/* The fibre is not resumed. */
static _Noreturn void stop(enum ptx_fault fault, uintptr_t address, int line)
{
    note(fault, address, line);
    setcontext(&now.scheduler);
    abort();
}

static bool *written_of(uintptr_t address, uint32_t n_bytes, int line)
{
    if (address % n_bytes)
        stop(PTX_MISALIGNED, address, line);
    for (unsigned i = 0; i < now.launch->n_buffers; i++) {
        const struct ptx_buffer *b = &now.launch->buffers[i];
        uintptr_t offset = address - (uintptr_t)b->start;
        if (offset < b->n_bytes && b->n_bytes - offset >= n_bytes)
            return b->is_written + offset;
    }
    stop(PTX_OUT_OF_BOUNDS, address, line);
}

uintptr_t ptx_ld_global(uintptr_t address, uint32_t n_bytes, int line)
{
    const bool *is_written = written_of(address, n_bytes, line);
    for (uint32_t i = 0; i < n_bytes; i++) {
        if (!is_written[i])
            stop(PTX_UNWRITTEN, address, line);
    }
    return address;
}

uintptr_t ptx_st_global(uintptr_t address, uint32_t n_bytes, int line)
{
    memset(written_of(address, n_bytes, line), true, n_bytes);
    return address;
}

static struct noted *noted_of(uintptr_t address, uint32_t n_bytes, int line)
{
    if (address % n_bytes)
        stop(PTX_MISALIGNED, address, line);
    if (address >= now.launch->shared_bytes || now.launch->shared_bytes - address < n_bytes)
        stop(PTX_OUT_OF_BOUNDS, address, line);
    return now.noted + address;
}

uintptr_t ptx_ld_shared(uintptr_t address, uint32_t n_bytes, int line)
{
    struct noted *noted = noted_of(address, n_bytes, line);
    for (uint32_t i = 0; i < n_bytes; i++) {
        struct noted *n = &noted[i];
        if (n->write_epoch == 0)
            stop(PTX_UNWRITTEN, address, line);
        if (n->write_epoch == now.epoch && n->writer != now.thread)
            stop(PTX_RACE, address, line);
        bool is_second = n->read_epoch == now.epoch && n->reader != now.thread;
        n->reader = is_second ? SEVERAL : now.thread;
        n->read_epoch = now.epoch;
    }
    return (uintptr_t)now.shared + address;
}

uintptr_t ptx_st_shared(uintptr_t address, uint32_t n_bytes, int line)
{
    struct noted *noted = noted_of(address, n_bytes, line);
    for (uint32_t i = 0; i < n_bytes; i++) {
        struct noted *n = &noted[i];
        if ((n->write_epoch == now.epoch && n->writer != now.thread) ||
            (n->read_epoch == now.epoch && n->reader != now.thread))
            stop(PTX_RACE, address, line);
        n->writer = now.thread;
        n->write_epoch = now.epoch;
    }
    return (uintptr_t)now.shared + address;
}

void ptx_barrier(int line)
{
    struct fibre *self = &now.fibres[now.thread];
    self->barrier = line;
    swapcontext(&self->context, &now.scheduler);
}

static void begin(void)
{
    now.launch->kernel(now.launch->arguments);
    now.fibres[now.thread].has_ended = true;
    setcontext(&now.scheduler);
}

static void prepare(uint32_t thread)
{
    struct fibre *f = &now.fibres[thread];
    f->has_ended = false;
    f->barrier = 0;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = now.stacks + (size_t)thread * STACK_BYTES;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, begin, 0);
}

/* Every thread up to its next barrier or its end. */
static void run_epoch(void)
{
    for (now.thread = 0; now.thread < now.launch->n_threads; now.thread++) {
        struct fibre *f = &now.fibres[now.thread];
        swapcontext(&now.scheduler, &f->context);
        if (now.report.fault)
            return;
        if (f->has_ended != now.fibres[0].has_ended || f->barrier != now.fibres[0].barrier) {
            note(PTX_UNEQUAL_BARRIERS, 0, f->barrier);
            return;
        }
    }
}

static void run_block(void)
{
    const struct ptx_launch *l = now.launch;
    memset(now.noted, 0, l->shared_bytes * sizeof(*now.noted));
    for (uint32_t i = 0; i < l->n_threads; i++)
        prepare(i);
    now.epoch = 0;
    do {
        now.epoch++;
        for (uint32_t i = 0; i < l->n_threads; i++)
            now.fibres[i].barrier = 0;
        run_epoch();
    } while (!now.report.fault && !now.fibres[0].has_ended);
}

int ptx_run(const struct ptx_launch *launch, struct ptx_report *ret_report)
{
    memset(&now, 0, sizeof(now));
    now.launch = launch;
    now.fibres = calloc(launch->n_threads, sizeof(*now.fibres));
    now.stacks = calloc(launch->n_threads, STACK_BYTES);
    now.shared = aligned_alloc(16, (launch->shared_bytes + 31) / 16 * 16);
    now.noted = calloc(launch->shared_bytes + 1, sizeof(*now.noted));
    bool has_all = now.fibres && now.stacks && now.shared && now.noted;
    for (uint32_t y = 0; has_all && y < launch->n_blocks[1]; y++) {
        for (uint32_t x = 0; x < launch->n_blocks[0] && !now.report.fault; x++) {
            now.block[0] = x;
            now.block[1] = y;
            run_block();
        }
    }
    free(now.fibres);
    free(now.stacks);
    free(now.shared);
    free(now.noted);
    *ret_report = now.report;
    return has_all ? 0 : -ENOMEM;
}
