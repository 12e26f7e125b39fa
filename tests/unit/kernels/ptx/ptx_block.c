/* Threads as fibres, and what is noted for each byte of shared memory: see ptx_block.h.
 *
 * A byte of shared memory knows who wrote it and who read it since which barrier. A store races
 * with a load or store of another thread since the last barrier, a load with another's store. Two
 * readers are remembered as SEVERAL, which is another thread than any; who adds atomically is
 * remembered as ATOMICALLY, which races with all that is not.
 *
 * A copy ahead makes its target unwritten at once, is done when its group is waited for, and is
 * then its thread's store: what reads too early, and what writes meanwhile, is found.
 */
#include "tests/unit/kernels/ptx/ptx_block.h"

#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* A frame has up to 101 KB where nothing is optimised. */
#define STACK_BYTES (UINT32_C(256) << 10)
#define SEVERAL     UINT32_MAX
#define ATOMICALLY  (UINT32_MAX - 1)
#define MAX_COPIES  64u /* of a thread, on their way */

_Thread_local bool ptx_model_is_rough;

/* Epochs count a block's barriers from 1: 0 is never. */
struct noted {
    uint32_t writer, write_epoch, reader, read_epoch;
};

struct copy {
    uintptr_t to, from;
    uint32_t n_bytes, group;
};

/* A context is what a fibre begins with; later it goes on where it was, which takes no call of the
 * system. One fibre runs a thread of every block. */
struct fibre {
    ucontext_t context;
    jmp_buf at;
    bool has_begun, has_ended;
    int barrier;    /* line */
    uint32_t group; /* of the copies that are asked for now */
    unsigned n_copies;
    struct copy copies[MAX_COPIES]; /* oldest first */
};

static struct {
    const struct ptx_launch *launch;
    struct ptx_report report;
    struct fibre *fibres;
    char *stacks, *shared;
    struct noted *noted;
    jmp_buf scheduler;
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
    _longjmp(now.scheduler, 1);
}

/* NULL: it is only read. */
static bool *written_of(uintptr_t address, uint32_t n_bytes, int line)
{
    if (address % n_bytes)
        stop(PTX_MISALIGNED, address, line);
    for (unsigned i = 0; i < now.launch->n_buffers; i++) {
        const struct ptx_buffer *b = &now.launch->buffers[i];
        uintptr_t offset = address - (uintptr_t)b->start;
        if (offset < b->n_bytes && b->n_bytes - offset >= n_bytes)
            return b->is_written ? b->is_written + offset : NULL;
    }
    stop(PTX_OUT_OF_BOUNDS, address, line);
}

uintptr_t ptx_ld_global(uintptr_t address, uint32_t n_bytes, int line)
{
    const bool *is_written = written_of(address, n_bytes, line);
    if (is_written && memchr(is_written, false, n_bytes))
        stop(PTX_UNWRITTEN, address, line);
    return address;
}

uintptr_t ptx_st_global(uintptr_t address, uint32_t n_bytes, int line)
{
    bool *is_written = written_of(address, n_bytes, line);
    if (!is_written)
        stop(PTX_READ_ONLY, address, line);
    memset(is_written, true, n_bytes);
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

uintptr_t ptx_atomic_shared(uintptr_t address, uint32_t n_bytes, int line)
{
    struct noted *noted = noted_of(address, n_bytes, line);
    for (uint32_t i = 0; i < n_bytes; i++) {
        struct noted *n = &noted[i];
        if (n->write_epoch == 0)
            stop(PTX_UNWRITTEN, address, line);
        bool is_own = n->write_epoch == now.epoch && n->writer == now.thread;
        if ((n->write_epoch == now.epoch && !is_own && n->writer != ATOMICALLY) ||
            (n->read_epoch == now.epoch && n->reader != now.thread))
            stop(PTX_RACE, address, line);
        n->writer = is_own ? now.thread : ATOMICALLY;
        n->write_epoch = now.epoch;
    }
    return (uintptr_t)now.shared + address;
}

uint64_t cvta_shared_u64(uint64_t address)
{
    return (uintptr_t)now.shared + address;
}

uint64_t cvta_to_shared_u64(uint64_t address)
{
    return address - (uintptr_t)now.shared;
}

static bool is_of_thread(uintptr_t address, uint32_t n_bytes)
{
    uintptr_t stack = (uintptr_t)now.stacks + (size_t)now.thread * STACK_BYTES;
    return address - stack < STACK_BYTES && stack + STACK_BYTES - address >= n_bytes;
}

static bool is_shared(uintptr_t address)
{
    return address - (uintptr_t)now.shared < now.launch->shared_bytes;
}

uintptr_t ptx_ld_generic(uintptr_t address, uint32_t n_bytes, int line)
{
    if (is_shared(address))
        return ptx_ld_shared(cvta_to_shared_u64(address), n_bytes, line);
    return is_of_thread(address, n_bytes) ? address : ptx_ld_global(address, n_bytes, line);
}

uintptr_t ptx_st_generic(uintptr_t address, uint32_t n_bytes, int line)
{
    if (is_shared(address))
        return ptx_st_shared(cvta_to_shared_u64(address), n_bytes, line);
    return is_of_thread(address, n_bytes) ? address : ptx_st_global(address, n_bytes, line);
}

void ptx_cp_async(uintptr_t to_shared, uintptr_t from_global, uint32_t n_bytes, int line)
{
    struct fibre *self = &now.fibres[now.thread];
    ptx_ld_global(from_global, n_bytes, line);
    ptx_st_shared(to_shared, n_bytes, line);
    if (self->n_copies == MAX_COPIES)
        stop(PTX_NOT_AWAITED, to_shared, line);
    for (uint32_t i = 0; i < n_bytes; i++)
        now.noted[to_shared + i].write_epoch = 0;
    self->copies[self->n_copies++] = (struct copy){to_shared, from_global, n_bytes, self->group};
}

void ptx_commit_group(void)
{
    now.fibres[now.thread].group++;
}

void ptx_wait_group(uint32_t n_newer, int line)
{
    struct fibre *self = &now.fibres[now.thread];
    unsigned n_done = 0;
    for (; n_done < self->n_copies; n_done++) {
        const struct copy *c = &self->copies[n_done];
        if (c->group + n_newer >= self->group)
            break;
        for (uint32_t i = 0; i < c->n_bytes; i++) {
            if (now.noted[c->to + i].write_epoch != 0)
                stop(PTX_RACE, c->to, line);
        }
        memcpy((void *)ptx_st_shared(c->to, c->n_bytes, line), (const void *)c->from, c->n_bytes);
    }
    self->n_copies -= n_done;
    memmove(self->copies, self->copies + n_done, self->n_copies * sizeof(*self->copies));
}

void ptx_barrier(int line)
{
    struct fibre *self = &now.fibres[now.thread];
    self->barrier = line;
    if (_setjmp(self->at) == 0)
        _longjmp(now.scheduler, 1);
}

static void begin(void)
{
    for (;;) {
        now.launch->kernel(now.launch->arguments);
        struct fibre *self = &now.fibres[now.thread];
        if (self->n_copies > 0)
            stop(PTX_NOT_AWAITED, self->copies[0].to, 0);
        self->has_ended = true;
        ptx_barrier(0);
    }
}

static void prepare(uint32_t thread)
{
    struct fibre *f = &now.fibres[thread];
    f->has_ended = false;
    f->barrier = 0;
    f->group = f->n_copies = 0;
    if (f->has_begun)
        return;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = now.stacks + (size_t)thread * STACK_BYTES;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, begin, 0);
}

static void resume(struct fibre *f)
{
    if (_setjmp(now.scheduler) != 0)
        return;
    if (f->has_begun)
        _longjmp(f->at, 1);
    f->has_begun = true;
    setcontext(&f->context);
}

/* Every thread up to its next barrier or its end. */
static void run_epoch(void)
{
    for (now.thread = 0; now.thread < now.launch->n_threads; now.thread++) {
        struct fibre *f = &now.fibres[now.thread];
        resume(f);
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
