/* What a stream's thread of the test double does with one operation, without the lock.
 *
 * Memory that an operation is to write holds garbage from its begin: who reads too early, and a
 * kernel that leaves a hole, is seen. A copy from pinned memory compares its source with what was
 * there when it was put into the queue.
 */
#include "tests/double/internal.h"

#include <string.h>
#include <time.h>

#define GARBAGE    0xA5
#define LINE_BYTES 64u
/* Of a modelled machine. */
#define MOVED_BYTES    ((size_t)256 * 1024) /* of a copy */
#define COMPUTED_BYTES ((size_t)64 * 1024)  /* of a kernel; no other runs */

/* Of one word in each line: enough to see that a slot was filled anew. */
uint64_t sum_memory(const char *memory, size_t n_bytes)
{
    uint64_t sum = n_bytes, word;
    for (size_t i = 0; i + sizeof word <= n_bytes; i += LINE_BYTES) {
        memcpy(&word, memory + i, sizeof word);
        sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
        sum ^= sum >> 29;
    }
    return sum;
}

bool operation_reads_word(const struct operation *o, uint64_t word)
{
    for (size_t i = 0; i + sizeof word <= o->read_bytes; i += sizeof word)
        if (memcmp(o->memory + i, &word, sizeof word) == 0)
            return true;
    return false;
}

static void sleep_ns(uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u),
                            .tv_nsec = (long)(ns % 1000000000u)};
    while (nanosleep(&time, &time))
        ;
}

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void delay(struct CUstream_st *stream)
{
    const struct settings *s = &the_double.settings;
    if (s->seed && s->delay_us)
        sleep_ns(draw(&stream->random) % (s->delay_us * 1000));
}

static void run_copy(struct CUstream_st *stream, const struct operation *o)
{
    const uint64_t begin_ns = now_ns(), rate = the_double.settings.slow_link;
    const size_t n_rows = o->n_bytes / o->row_bytes;
    for (size_t i = 0; i < n_rows; i++)
        if (o->direction == cudaMemcpyDeviceToHost && the_double.settings.seed)
            memset(o->to + i * o->to_pitch, GARBAGE, o->row_bytes);
    delay(stream);
    if (o->is_source_guarded && sum_memory(o->from, o->n_bytes) != o->source_sum)
        double_abort("wrong order: the program writes to pinned memory from which a copy of %zu "
                     "bytes has not run yet",
                     o->n_bytes);
    for (size_t i = 0; i < n_rows; i++)
        memmove(o->to + i * o->to_pitch, o->from + i * o->from_pitch, o->row_bytes);
    if (!rate || o->direction == cudaMemcpyDeviceToDevice)
        return;
    const uint64_t end_ns = begin_ns + (uint64_t)((double)o->n_bytes * 1e9 / (double)rate);
    const uint64_t at_ns = now_ns();
    if (end_ns > at_ns)
        sleep_ns(end_ns - at_ns);
}

static void run_kernel(struct CUstream_st *stream, const struct operation *o)
{
    const uint64_t begin = o->write_offset > o->read_bytes ? o->write_offset : o->read_bytes;
    const uint64_t end = o->write_offset + o->write_bytes;
    if (begin < end)
        memset(o->memory + begin, GARBAGE, end - begin);
    delay(stream);
    o->kernel(o->memory, o->arguments);
}

/* On a modelled machine time is all that counts, but for what the program looks at. */
static void run_beginning(const struct operation *o)
{
    if (o->kind == OPERATION_COPY)
        memmove(o->to, o->from, o->row_bytes < MOVED_BYTES ? o->row_bytes : MOVED_BYTES);
    else if (o->read_bytes + o->write_bytes + o->outside_bytes <= COMPUTED_BYTES)
        o->kernel(o->memory, o->arguments);
}

void operation_run(struct CUstream_st *stream, const struct operation *o)
{
    if (the_double.timeline.machine)
        run_beginning(o);
    else if (o->kind == OPERATION_COPY)
        run_copy(stream, o);
    else
        run_kernel(stream, o);
}
