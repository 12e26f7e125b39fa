/* A model of what a device takes: machine=NAME (settings.c) makes streams work by this clock.
 *
 * Streams, events, copies and launches come in the order in which the program gives them and wait
 * for each other as they do for a device; only what each takes is figured out instead of seen. An
 * operation begins when the program has issued it, what is before it in its stream has ended, and
 * its engine (a copy's way, or all processors) is free. Events tell these times, so that the
 * program measures the machine's rates and plans for them. A call takes the program call_ns, and
 * calls of all threads come one after the other; asking in vain whether an event has come takes
 * nothing, since a program that is slowed down asks the more often.
 *
 * From when armed= says so, the program is held to the clock, slowed down by pace=: what a program
 * does next depends on what has ended before. What it computes on the host is then as good as
 * free, so what a host copies or reads is no part of a prediction; plans are made for the host's
 * memory that the machine names, which the worker takes for measured (host_memory.c). Before that,
 * and with pace=0, nothing waits.
 *
 * A copy takes copy_ns and its bytes at the link's rate. A kernel takes launch_ns, and the longer
 * of its bytes at the memory's rate and its instructions: blocks go to processors in turn, and the
 * last turn takes as long as a full one. Products take their operations at a rate of their own.
 * Kernels of the most patient streams (of priority 0) let others go before them at any time, which
 * then cost them as much; among others, too, they come one by one.
 * Not modelled: caches, kernels beside each other otherwise, both ways of a link sharing anything.
 *
 * Large copies move nothing but their beginning, where a tile's header and records are, and kernels
 * that touch much are not run: results are meaningless.
 */
#include "tests/double/timeline.h"
#include "tests/double/internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS 1e9

/* Rates of the link are of pinned copies, one way; call_ns, copy_ns and launch_ns are what drivers
 * of today take, about, and no part of what tells the machines apart. */
static const struct timeline_machine machines[] = {
    {.name = "h100",
     .to_device = 55e9,
     .from_device = 55e9,
     .memory = 3.35e12,
     .host_memory = 200e9,
     .instructions = 33.5e12,
     .product_float32 = 67e12,
     .product_tf32 = 400e12,
     .product_float64 = 60e12,
     .n_processors = 132,
     .call_ns = 1300,
     .copy_ns = 1500,
     .launch_ns = 2500},
    {.name = "small",
     .to_device = 12e9,
     .from_device = 12e9,
     .memory = 450e9,
     .host_memory = 40e9,
     .instructions = 4.5e12,
     .product_float32 = 9e12,
     .product_tf32 = 18e12,
     .product_float64 = 0.28e12,
     .n_processors = 28,
     .call_ns = 1300,
     .copy_ns = 1500,
     .launch_ns = 2500},
};

const struct timeline_machine *timeline_find(const char *name)
{
    for (unsigned i = 0; i < sizeof machines / sizeof *machines; i++)
        if (strcmp(machines[i].name, name) == 0)
            return &machines[i];
    return NULL;
}

double timeline_host_memory(void)
{
    return the_double.timeline.machine ? the_double.timeline.machine->host_memory : 0;
}

uint64_t timeline_copy_ns(const struct timeline_machine *machine, enum timeline_engine engine,
                          uint64_t n_bytes)
{
    const double rate = engine == TIMELINE_TO_DEVICE ? machine->to_device : machine->from_device;
    return machine->copy_ns + (uint64_t)((double)n_bytes / rate * NS);
}

static double longer(double a, double b)
{
    return a > b ? a : b;
}

uint64_t timeline_kernel_ns(const struct timeline_machine *machine,
                            const struct timeline_work *work)
{
    const uint64_t n = machine->n_processors;
    const uint64_t n_turns = (work->n_blocks + n - 1) / n;
    const double share = n_turns ? (double)(n_turns * n) / (double)work->n_blocks : 1;
    const double arithmetic = work->instructions * share / machine->instructions;
    const double product = work->product_float32 / machine->product_float32 +
                           work->product_tf32 / machine->product_tf32 +
                           work->product_float64 / machine->product_float64;
    const double seconds = longer((double)work->n_bytes / machine->memory, arithmetic + product);
    return machine->launch_ns + (uint64_t)(seconds * NS);
}

/* The clock ----------------------------------------------------------------------------------- */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Whether the program is held to the clock, from the first time on. */
static bool is_paced_locked(void)
{
    struct timeline *line = &the_double.timeline;
    if (!line->is_paced && the_double.settings.pace && is_armed()) {
        line->is_paced = true;
        line->real_ns = now_ns();
        line->begin_ns = line->host_ns;
    }
    return line->is_paced;
}

void timeline_call_locked(void)
{
    struct timeline *line = &the_double.timeline;
    if (!line->machine)
        return;
    if (is_paced_locked())
        line->host_ns = later(line->host_ns, line->begin_ns + (now_ns() - line->real_ns) /
                                                                  the_double.settings.pace);
    line->host_ns += line->machine->call_ns;
}

void timeline_see_locked(uint64_t time_ns)
{
    the_double.timeline.host_ns = later(the_double.timeline.host_ns, time_ns);
}

/* Unlocks meanwhile. */
static void wait_until_locked(uint64_t time_ns)
{
    const struct timeline *line = &the_double.timeline;
    if (!line->is_paced || time_ns <= line->begin_ns)
        return;
    const uint64_t real_ns = line->real_ns + (time_ns - line->begin_ns) * the_double.settings.pace;
    const struct timespec time = {.tv_sec = (time_t)(real_ns / 1000000000u),
                                  .tv_nsec = (long)(real_ns % 1000000000u)};
    pthread_mutex_unlock(&the_double.lock);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL))
        ;
    pthread_mutex_lock(&the_double.lock);
}

static enum timeline_engine engine_of(const struct operation *o)
{
    if (o->kind == OPERATION_KERNEL || o->direction == cudaMemcpyDeviceToDevice)
        return TIMELINE_KERNELS;
    return o->direction == cudaMemcpyHostToDevice ? TIMELINE_TO_DEVICE : TIMELINE_FROM_DEVICE;
}

/* *ret_size: a copy's bytes; what the kernel would take if it filled the device from its begin. */
static uint64_t work_ns(const struct operation *o, enum timeline_engine engine, uint64_t *ret_size)
{
    const struct timeline_machine *machine = the_double.timeline.machine;
    struct timeline_work work = {.n_bytes = 2 * o->n_bytes}; /* a copy on the device */
    *ret_size = o->n_bytes;
    if (engine != TIMELINE_KERNELS)
        return timeline_copy_ns(machine, engine, o->n_bytes);
    if (o->kind == OPERATION_KERNEL) {
        work = (struct timeline_work){.n_bytes = o->read_bytes + o->write_bytes};
        if (o->work)
            o->work(o->memory, o->arguments, &work);
    }
    const uint64_t ns = timeline_kernel_ns(machine, &work);
    work.n_blocks = 0;
    *ret_size = timeline_kernel_ns(machine, &work) - machine->launch_ns;
    return ns;
}

static void tell_locked(const struct operation *o, enum timeline_engine engine, uint64_t size,
                        uint64_t end_ns, uint64_t ns)
{
    static const char *const names[] = {"to", "from", "kernel"};
    struct timeline *line = &the_double.timeline;
    if (!line->is_paced || !*the_double.settings.timeline)
        return;
    if (!line->file) {
        line->file = fopen(the_double.settings.timeline, "we");
        if (!line->file)
            double_abort("%s cannot be made", the_double.settings.timeline);
        setvbuf(line->file, NULL, _IOLBF, 0);
    }
    fprintf(line->file, "%s %llu %llu %llu %llu\n", names[engine], (unsigned long long)o->issued_ns,
            (unsigned long long)end_ns, (unsigned long long)ns, (unsigned long long)size);
}

void timeline_work_locked(struct CUstream_st *stream, const struct operation *o)
{
    struct timeline *line = &the_double.timeline;
    const enum timeline_engine engine = engine_of(o);
    uint64_t size;
    const uint64_t ns = work_ns(o, engine, &size);
    uint64_t *const free_ns = engine == TIMELINE_KERNELS && stream->priority == 0
                                  ? &line->patient_ns
                                  : &line->free_ns[engine];
    stream->time_ns = ns + later(later(stream->time_ns, o->issued_ns), *free_ns);
    *free_ns = stream->time_ns;
    if (engine == TIMELINE_KERNELS && stream->priority != 0) /* who was patient lost so much */
        line->patient_ns = later(line->patient_ns, stream->time_ns - ns) + ns;
    tell_locked(o, engine, size, stream->time_ns, ns);
    wait_until_locked(stream->time_ns);
}

void timeline_record_locked(struct CUstream_st *stream, struct operation *o)
{
    stream->time_ns = later(stream->time_ns, o->issued_ns);
    o->record->time_ns = stream->time_ns;
    wait_until_locked(stream->time_ns);
}

void timeline_wait_locked(struct CUstream_st *stream, const struct operation *o)
{
    stream->time_ns = later(later(stream->time_ns, o->issued_ns), o->record->time_ns);
}
