/* Sources that are not read but mapped, so that nothing is copied out of the page cache.
 *
 * A page that is not in the cache would make the thread wait for a disk when it touches it. So some
 * elements are read first, in the way that does not wait; where one is not there an I/O thread asks
 * for all that is needed, and waits. What leaves the cache meanwhile is waited for after all. Under
 * the guard, a page that the file does not have any more is an error of the file's.
 *
 * Only files are mapped whose file system knows reads that do not wait: others may be a program of
 * the client's or another machine, and a thread that touches a page that they never give is lost.
 * Nor are files in memory, where touching a hole takes memory. Where some source cannot be mapped,
 * the job is planned again without mapping (wjob.c).
 *
 * Called by the CPU engine's turns, and as a job begins.
 */
#include "daemon/worker/jobs/mapping.h"
#include "proto/util.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define LOAD_BYTES (16 * 1024)
#define N_LOOKS    64

/* Whether the file system itself has the pages, and gives them without anybody else's help. */
static bool can_map(const struct port *p, int64_t first)
{
    char byte;
    struct iovec vector = {.iov_base = &byte, .iov_len = 1};
    if (p->file.is_in_memory)
        return false;
    return preadv2(p->file.fd, &vector, 1, (off_t)first, RWF_NOWAIT) >= 0 || errno == EAGAIN;
}

static bool map_source(struct port *p)
{
    int64_t low, high, page = sysconf(_SC_PAGESIZE);
    if (p->file.mapping)
        return true;
    array_extent(&p->array, &low, &high);
    int64_t first = (int64_t)p->array.at.file.offset_bytes + low, begin = first / page * page;
    int64_t n_bytes = (int64_t)p->array.at.file.offset_bytes + high - begin;
    if (!can_map(p, first))
        return false;
    void *memory = mmap(NULL, (size_t)n_bytes, PROT_READ, MAP_PRIVATE, p->file.fd, (off_t)begin);
    if (memory == MAP_FAILED)
        return false;
    p->file.mapping = memory;
    p->file.mapping_bytes = n_bytes;
    p->file.mapping_begin = begin;
    return true;
}

static struct port *source_of(const struct wjob *job, unsigned pass)
{
    return &job->ports[__builtin_ctzll(job->program->passes[pass].inputs_used)];
}

/* What has to come from a disk is better read: then reads are as large and as many as the system
 * makes them. */
static bool is_in_cache(const struct port *p)
{
    char byte;
    struct iovec vector = {.iov_base = &byte, .iov_len = 1};
    for (int64_t i = 0; i < N_LOOKS; i++) {
        int64_t at = p->file.mapping_begin + (p->file.mapping_bytes - 1) / (N_LOOKS - 1) * i;
        if (preadv2(p->file.fd, &vector, 1, (off_t)at, RWF_NOWAIT) != 1)
            return false;
    }
    return true;
}

bool mapping_open(struct wjob *job)
{
    for (unsigned i = 0; i < job->plan.n_passes; i++)
        if (job->plan.passes[i].swaths_are_mapped && !map_source(source_of(job, i)))
            return false;
    for (unsigned i = 0; i < job->program->n_slabs; i++) {
        if (!job->plan.slabs[i].is_mapped) /* X need not be an argument */
            continue;
        struct port *x = source_of(job, job->program->slabs[i].first_pass);
        if (!map_source(x) || !is_in_cache(x))
            return false;
    }
    return true;
}

int mapping_touch(const struct port *port, const struct port_box *at, struct thread_context *th)
{
    struct port_box one = *at;
    char element[sizeof(double)];
    for (int i = 0; i < port->array.ndim; i++)
        one.count[i] = 1;
    return port->ops->fill(port, &one, element, &th->io, &th->error);
}

/* Read and forgotten: so the system reads ahead, in large pieces, which it does not where pages are
 * asked for one by one. What cannot be read the touch tells. */
static void load_row(const struct port *port, const struct port_box *row)
{
    char bytes[LOAD_BYTES];
    int64_t at = (int64_t)port->array.at.file.offset_bytes, left = port_box_bytes(port, row);
    for (int i = 0; i < port->array.ndim; i++)
        at += row->start[i] * port->array.strides[i];
    ssize_t got = 1;
    for (; left > 0 && got > 0; left -= got, at += got)
        got = pread(port->file.fd, bytes, (size_t)min_i64(left, LOAD_BYTES), (off_t)at);
}

int mapping_fill(const struct port *port, const struct port_box *box, struct thread_context *th)
{
    struct port_box row = *box;
    int64_t n = box->count[0], step = th->io.may_block ? 1 : max_i64(n - 1, 1);
    int r = 0;
    row.count[0] = 1;
    for (int64_t i = 0; i < n && !r; i += step) {
        row.start[0] = box->start[0] + i;
        if (th->io.may_block)
            load_row(port, &row);
        r = mapping_touch(port, &row, th);
    }
    return r;
}

void mapping_view(const struct port *port, const struct port_box *box, struct engine_view *ret_view)
{
    int64_t offset = (int64_t)port->array.at.file.offset_bytes - port->file.mapping_begin;
    for (int i = 0; i < port->array.ndim; i++) {
        offset += box->start[i] * port->array.strides[i];
        ret_view->strides[i] = port->array.strides[i];
    }
    ret_view->base = port->file.mapping + offset;
    ret_view->is_swapped = port->array.is_swapped;
}

int mapping_check(const struct port *port, struct gad_error *error)
{
    struct stat st;
    if (fstat(port->file.fd, &st) < 0 ||
        st.st_size >= port->file.mapping_begin + port->file.mapping_bytes)
        return 0;
    return port_file_fault(port, port->file.mapping + port->file.mapping_bytes - 1, error);
}
