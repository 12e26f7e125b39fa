/* A ring that any number of threads write and one reads, without locks.
 *
 *     add:   take the next number -> mark its slot as being written -> write -> mark it as written
 *     find:  look at every slot; what was being written, or changed meanwhile, is passed over
 *
 * A thread that stands still between the two marks for a whole round of the ring would meet another
 * one in its slot: who comes second gives way, so that a record is of one thread or is not there.
 * What is lost that way is a record among sixteen thousand; nobody is ever waited for.
 *
 * The memory is the system's zero pages until it is used, and never more than that.
 *
 * Called by the threads of the worker through tile.c, and by traced.c.
 */
#include "daemon/worker/trace.h"
#include "proto/util.h"

int trace_new(uint64_t now_ns, struct trace **ret_trace)
{
    struct trace *trace = calloc(1, sizeof(*trace));
    if (!trace)
        return -ENOMEM;
    trace->since_ns = now_ns;
    *ret_trace = trace;
    return 0;
}

struct trace *trace_free(struct trace *trace)
{
    free(trace);
    return NULL;
}

static uint64_t rest_of(const struct trace_record *record)
{
    return (uint64_t)record->tile << 32 | (uint64_t)record->lane << 16 |
           (uint64_t)record->kind << 8 | record->pass;
}

static void store(_Atomic uint64_t *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_relaxed);
}

static uint64_t load(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

/* Records come in the order in which they are told of, which is not quite that of their ends. */
static void forget_until(struct trace *trace, uint64_t end_ns)
{
    uint64_t since_ns = load(&trace->since_ns);
    while (since_ns < end_ns &&
           !atomic_compare_exchange_weak_explicit(&trace->since_ns, &since_ns, end_ns,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

/* The slot of the record with this number; NULL: another one has it. Who finds it taken knows of
 * what was in it before. */
static struct trace_slot *take_slot(struct trace *trace, uint64_t number)
{
    struct trace_slot *slot = &trace->slots[number % TRACE_SLOTS];
    uint64_t stamp = atomic_load_explicit(&slot->stamp, memory_order_acquire);
    if ((stamp & 1) != 0 || stamp > 2 * number)
        return NULL;
    if (stamp != 0)
        forget_until(trace, load(&slot->begin_ns) + load(&slot->duration_ns));
    return atomic_compare_exchange_strong_explicit(&slot->stamp, &stamp, 2 * number + 1,
                                                   memory_order_acq_rel, memory_order_relaxed)
               ? slot
               : NULL;
}

void trace_add(struct trace *trace, uint64_t job, const struct trace_record *record)
{
    if (!trace || record->duration_ns > INT64_MAX)
        return;
    uint64_t number = atomic_fetch_add_explicit(&trace->n_added, 1, memory_order_relaxed);
    struct trace_slot *slot = take_slot(trace, number);
    if (!slot)
        return;
    atomic_thread_fence(memory_order_release); /* the mark comes before what it is about */
    store(&slot->job, job);
    store(&slot->begin_ns, record->begin_ns);
    store(&slot->duration_ns, record->duration_ns);
    store(&slot->rest, rest_of(record));
    atomic_store_explicit(&slot->stamp, 2 * number + 2, memory_order_release);
}

static bool read_slot(const struct trace_slot *slot, uint64_t *ret_job, struct trace_record *ret)
{
    uint64_t stamp = atomic_load_explicit(&slot->stamp, memory_order_acquire);
    if (stamp == 0 || (stamp & 1) != 0)
        return false;
    uint64_t rest = load(&slot->rest);
    *ret_job = load(&slot->job);
    *ret = (struct trace_record){.begin_ns = load(&slot->begin_ns),
                                 .duration_ns = load(&slot->duration_ns),
                                 .tile = (uint32_t)(rest >> 32),
                                 .lane = (uint16_t)(rest >> 16),
                                 .kind = (uint8_t)(rest >> 8),
                                 .pass = (uint8_t)rest};
    atomic_thread_fence(memory_order_acquire);
    return load(&slot->stamp) == stamp;
}

unsigned trace_find(const struct trace *trace, uint64_t job, struct trace_record *ret_records,
                    uint64_t *ret_since_ns)
{
    unsigned n = 0;
    for (unsigned i = 0; i < TRACE_SLOTS; i++) {
        struct trace_record record;
        uint64_t whose;
        if (read_slot(&trace->slots[i], &whose, &record) && whose == job)
            ret_records[n++] = record;
    }
    atomic_thread_fence(memory_order_acquire);
    *ret_since_ns = load(&trace->since_ns);
    return n;
}
