/* Copies and kernels of the test double: what is checked when they are put into a stream's queue.
 *
 * Called by kernels/cuda/runtime.c (copies) and by the host compilation of the kernels (launches).
 */
#include "tests/double/internal.h"

#include <string.h>

/* One more copy or launch: is the device lost before it? */
static bool is_lost_locked(void)
{
    const uint64_t limit = the_double.settings.lost_after;
    if (!limit || !is_armed() || ++the_double.n_operations <= limit)
        return false;
    stream_lose_locked();
    return true;
}

static const char kernel_name[] = "a kernel";

struct side {
    const char *address, *real;
    const struct memory *memory;
};

static struct side find_side(const void *address, size_t n_bytes, bool is_device, bool is_written,
                             const char *what)
{
    const struct memory *m = memory_find_locked(address, n_bytes);
    if (!m && is_device)
        double_abort("%s: %zu bytes at %p are not of one piece of device memory", what, n_bytes,
                     address);
    if (!m)
        double_abort("%s: %zu bytes at %p are not pinned: the copy would wait", what, n_bytes,
                     address);
    if ((m->kind == MEMORY_DEVICE) != is_device)
        double_abort("%s: the memory at %p is on the wrong side", what, address);
    if (is_written && m->kind == MEMORY_READ_ONLY)
        double_abort("%s: the memory at %p is registered for reading only", what, address);
    const char *begin = address;
    return (struct side){begin, m->real + (begin - m->address), m};
}

static const char *count_copy_locked(enum cudaMemcpyKind kind, size_t n_bytes)
{
    struct double_stats *s = the_double.stats;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        s->n_to_device++;
        s->bytes_to_device += n_bytes;
        return "a copy to the device";
    case cudaMemcpyDeviceToHost:
        s->n_from_device++;
        s->bytes_from_device += n_bytes;
        return "a copy from the device";
    case cudaMemcpyDeviceToDevice:
        s->n_on_device++;
        s->bytes_on_device += n_bytes;
        return "a copy on the device";
    }
    double_abort("a copy that goes nowhere");
}

static void set_faults_locked(struct operation *o, uint64_t sticky, uint64_t hang, uint64_t *count)
{
    const bool is_counted = (sticky || hang) && is_armed();
    if (!is_counted)
        return;
    ++*count;
    o->is_faulty = sticky == EVERY || sticky == *count;
    o->is_hanging = hang == EVERY || hang == *count;
}

/* Rows of the same length on both sides. */
struct rows {
    void *to;
    const void *from;
    size_t to_pitch, from_pitch, row_bytes, n_rows;
};

static size_t span_of(const struct rows *r, size_t pitch)
{
    return (r->n_rows - 1) * pitch + r->row_bytes;
}

/* Row by row, unless they lie dense: what lies between rows is others'. */
static void touch_rows(const struct clock *clock, unsigned index, const char *what,
                       const char *address, const struct rows *r, size_t pitch, bool is_written)
{
    const bool is_dense = pitch == r->row_bytes;
    for (size_t i = 0; i < (is_dense ? 1 : r->n_rows); i++)
        order_touch(clock, index, what, address + i * pitch,
                    is_dense ? r->n_rows * r->row_bytes : r->row_bytes, is_written);
}

static void put_copy_locked(const struct rows *r, enum cudaMemcpyKind kind,
                            struct CUstream_st *stream)
{
    const size_t n_bytes = r->n_rows * r->row_bytes;
    const char *what = count_copy_locked(kind, n_bytes);
    const struct side source =
        find_side(r->from, span_of(r, r->from_pitch), kind != cudaMemcpyHostToDevice, false, what);
    const struct side target =
        find_side(r->to, span_of(r, r->to_pitch), kind != cudaMemcpyDeviceToHost, true, what);
    struct operation *o = operation_new(OPERATION_COPY);
    o->direction = kind;
    o->to = (char *)target.real;
    o->from = source.real;
    o->n_bytes = n_bytes;
    o->row_bytes = r->row_bytes;
    o->to_pitch = r->to_pitch;
    o->from_pitch = r->from_pitch;
    o->is_source_guarded = !the_double.timeline.machine && source.memory->kind == MEMORY_PINNED &&
                           r->n_rows == 1 && order_is_quiet(source.address, n_bytes);
    if (o->is_source_guarded)
        o->source_sum = sum_memory(source.real, n_bytes);
    set_faults_locked(o, the_double.settings.sticky_copy, the_double.settings.hang_copy,
                      &the_double.n_copies);
    const struct clock *clock = stream_tick_locked(stream);
    touch_rows(clock, stream->index, what, source.address, r, r->from_pitch, false);
    touch_rows(clock, stream->index, what, target.address, r, r->to_pitch, true);
    stream_put_locked(stream, o);
}

static cudaError_t put_rows(const struct rows *r, enum cudaMemcpyKind kind, cudaStream_t stream,
                            const char *what)
{
    cudaError_t error = double_enter(true);
    if (!error && is_lost_locked())
        error = the_double.sticky;
    if (!error && r->row_bytes && r->n_rows) {
        timeline_call_locked();
        stream_check_locked(stream, what);
        put_copy_locked(r, kind, stream);
    }
    return double_leave(error);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n_bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    const struct rows r = {to, from, n_bytes, n_bytes, n_bytes, 1};
    return put_rows(&r, kind, stream, "cudaMemcpyAsync");
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    const struct rows r = {to, from, to_pitch, from_pitch, width, height};
    if (width > to_pitch || width > from_pitch)
        double_abort("cudaMemcpy2DAsync: rows of %zu bytes are %zu and %zu apart", width, to_pitch,
                     from_pitch);
    return put_rows(&r, kind, stream, "cudaMemcpy2DAsync");
}

static struct operation *kernel_new_locked(const struct cuda_host_launch *launch)
{
    if (launch->n_argument_bytes > CUDA_HOST_MAX_ARGUMENTS)
        double_abort("a launch with too many arguments");
    struct operation *o = operation_new(OPERATION_KERNEL);
    o->kernel = launch->kernel;
    o->work = launch->work;
    if (launch->n_argument_bytes)
        memcpy(o->arguments, launch->arguments, launch->n_argument_bytes);
    o->read_bytes = launch->read_bytes;
    o->write_offset = launch->write_offset;
    o->write_bytes = launch->write_bytes;
    for (unsigned i = 0; i < CUDA_HOST_MAX_RANGES; i++)
        o->outside_bytes += launch->ranges[i].n_bytes;
    return o;
}

/* What lies outside of the slot: kernels reach it by its distance. */
static void touch_ranges_locked(const struct cuda_host_launch *launch, const struct side *slot,
                                const struct clock *clock, unsigned index)
{
    for (unsigned i = 0; i < CUDA_HOST_MAX_RANGES; i++) {
        const struct cuda_host_range *range = &launch->ranges[i];
        if (range->n_bytes == 0)
            continue;
        const struct side side =
            find_side(range->address, range->n_bytes, true, range->is_written, kernel_name);
        if (side.memory != slot->memory)
            double_abort("a kernel's slot and what it touches outside are of different memory");
        order_touch(clock, index, kernel_name, side.address, range->n_bytes, range->is_written);
    }
}

static void put_kernel_locked(const struct cuda_host_launch *launch, struct CUstream_st *stream)
{
    if (launch->read_bytes > launch->slot_bytes ||
        launch->write_offset + launch->write_bytes > launch->slot_bytes)
        double_abort("a kernel reads or writes outside of its slot");
    const struct side slot =
        find_side(launch->device_slot, launch->slot_bytes, true, true, kernel_name);
    struct operation *o = kernel_new_locked(launch);
    o->memory = (char *)slot.real;
    if (!launch->is_warm_up)
        set_faults_locked(o, the_double.settings.sticky_launch, the_double.settings.hang_launch,
                          &the_double.n_launches);
    const struct clock *clock = stream_tick_locked(stream);
    order_touch(clock, stream->index, kernel_name, slot.address, launch->read_bytes, false);
    order_touch(clock, stream->index, kernel_name, slot.address + launch->write_offset,
                launch->write_bytes, true);
    touch_ranges_locked(launch, &slot, clock, stream->index);
    the_double.stats->n_launches++;
    stream_put_locked(stream, o);
}

int cuda_host_launch(const struct cuda_host_launch *launch, cuda_stream stream)
{
    cudaError_t error = double_enter(true);
    if (!error && !launch->is_warm_up) {
        if (is_lost_locked())
            error = the_double.sticky;
        else if (is_nth(the_double.settings.fail_launch, &the_double.n_refused))
            error = cudaErrorLaunchOutOfResources;
    }
    if (!error) {
        timeline_call_locked();
        stream_check_locked(stream, "a launch");
        put_kernel_locked(launch, stream);
    }
    /* A launch's error is asked for, and so taken back, by who launches. */
    return double_leave(error) ? (int)cudaGetLastError() : 0;
}
