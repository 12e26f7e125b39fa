/* Arrays that lie in a file with strides: rows, columns, any view of a contiguous block.
 *
 * A box is packed densely into the slot with its axes in the order in which they lie in the file,
 * so that what is contiguous in the file is so in memory, whatever the order of the array: Fortran
 * order costs the same system calls as C order. Axes with a stride of 0 (sources) are read once;
 * negative strides are read upwards and viewed downwards.
 *
 * The file's size is asked once, when the job begins, so that a file that is too short is refused
 * before anything is computed. One that is cut later shows as a short read, or, where it is mapped,
 * as a SIGBUS (guard.c), which port_file_fault() explains.
 */
#include "daemon/worker/io/boxio.h"
#include "daemon/worker/io/port.h"
#include "proto/util.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* The box in memory of these strides. */
static int file_fill_view(const struct port *p, const struct port_box *box,
                          const struct engine_view *view, const struct port_io *io,
                          struct gad_error *error)
{
    struct boxio b = {.fd = p->file.fd,
                      .is_in_memory = p->file.is_in_memory,
                      .device = p->file.device,
                      .name = p->name,
                      .offset = (int64_t)p->array.at.file.offset_bytes,
                      .item_bytes = p->item_bytes};
    char *memory = view->base;
    for (int i = p->array.ndim - 1; i >= 0; i--) {
        int axis = p->file.order[i];
        int64_t stride = p->array.strides[axis], count = box->count[axis];
        bool is_down = stride < 0; /* files are read upwards */
        box_add(&b.box, count, llabs(stride), is_down ? -view->strides[axis] : view->strides[axis]);
        b.offset += (box->start[axis] + (is_down ? count - 1 : 0)) * stride;
        memory += is_down ? (count - 1) * view->strides[axis] : 0;
    }
    return boxio_read(&b, memory, io, error);
}

/* The box as axes of boxio; *ret_view where its elements will be. */
static void file_layout(const struct port *p, const struct port_box *box, char *memory,
                        struct boxio *ret_io, struct engine_view *ret_view)
{
    *ret_io = (struct boxio){.fd = p->file.fd,
                             .is_in_memory = p->file.is_in_memory,
                             .device = p->file.device,
                             .n_blocks = p->file.n_blocks,
                             .name = p->name,
                             .writing = p->file.writing,
                             .gaps = p->file.gaps,
                             .may_span = p->file.may_span,
                             .offset = (int64_t)p->array.at.file.offset_bytes,
                             .item_bytes = p->item_bytes};
    int64_t memory_stride = p->item_bytes;
    for (int i = p->array.ndim - 1; i >= 0; i--) {
        int axis = p->file.order[i];
        int64_t stride = p->array.strides[axis];
        int64_t count = stride == 0 ? 1 : box->count[axis];
        box_add(&ret_io->box, count, llabs(stride), memory_stride);
        ret_view->strides[axis] = stride == 0 ? 0 : memory_stride;
        ret_io->offset += box->start[axis] * stride;
        if (stride < 0) {
            ret_io->offset += (count - 1) * stride;
            memory += (count - 1) * memory_stride;
            ret_view->strides[axis] = -memory_stride;
        }
        memory_stride *= count;
    }
    ret_view->base = memory;
    ret_view->is_swapped = p->array.is_swapped;
}

static void file_place(const struct port *p, const struct port_box *box, void *memory,
                       struct engine_view *ret_view)
{
    struct boxio io;
    file_layout(p, box, memory, &io, ret_view);
}

static int file_fill(const struct port *p, const struct port_box *box, void *memory,
                     const struct port_io *io, struct gad_error *error)
{
    struct boxio b;
    struct engine_view view;
    file_layout(p, box, memory, &b, &view);
    return boxio_read(&b, memory, io, error);
}

static int file_store(const struct port *p, const struct port_box *box, const void *memory,
                      const struct port_io *io, struct gad_error *error)
{
    struct boxio b;
    struct engine_view view;
    file_layout(p, box, (char *)memory, &b, &view); /* computes addresses, writes nothing */
    return boxio_write(&b, memory, io, error);
}

/* A box that lies close together is announced as a whole; of others the system's own read-ahead
 * would fetch mostly what nobody wants. */
static void file_prefetch(const struct port *p, const struct port_box *box)
{
    int64_t low = 0, high = p->item_bytes;
    for (int i = 0; i < p->array.ndim; i++) {
        int64_t first = box->start[i] * p->array.strides[i];
        int64_t last = (box->start[i] + box->count[i] - 1) * p->array.strides[i];
        low += first < last ? first : last;
        high += first < last ? last : first;
    }
    if (!p->file.is_in_memory && high - low <= 4 * port_box_bytes(p, box))
        posix_fadvise(p->file.fd, (off_t)p->array.at.file.offset_bytes + low, high - low,
                      POSIX_FADV_WILLNEED);
}

static const struct port_ops file_ops = {
    .capabilities = PORT_RANDOM | PORT_STAGED | PORT_LONG,
    .place = file_place,
    .fill = file_fill,
    .fill_view = file_fill_view,
    .store = file_store,
    .prefetch = file_prefetch,
};

int port_file_init(struct port *p, const struct port_context *context, uint32_t fd_index,
                   struct gad_error *error)
{
    struct stat st;
    struct statfs fs;
    if (fd_index >= context->n_fds)
        return error_set(error, GAD_BAD_DESCRIPTOR, p->name, "the descriptor was not sent");
    p->file.fd = context->fds[fd_index];
    if (fstat(p->file.fd, &st) < 0 || fstatfs(p->file.fd, &fs) < 0)
        return error_from_errno(error, errno, p->name, "asking for the file's size");
    if (!S_ISREG(st.st_mode))
        return error_set(error, GAD_BAD_DESCRIPTOR, p->name, "the file is not a regular one");
    p->file.size_bytes = st.st_size;
    p->file.device = st.st_dev;
    p->file.n_blocks = (int64_t)max_u64((uint64_t)(st.st_size + 511) / 512, (uint64_t)st.st_blocks);
    p->file.is_in_memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC ||
                           (unsigned long)fs.f_type == HUGETLBFS_MAGIC;
    return 0;
}

int port_file_fault(const struct port *p, const char *address, struct gad_error *error)
{
    int64_t at = p->file.mapping_begin + (address - p->file.mapping);
    struct stat st;
    if (fstat(p->file.fd, &st) < 0 || at < st.st_size)
        return error_from_errno(error, EIO, p->name, "reading the file");
    error_set(error, GAD_SHORT_READ, p->name, "the file ends before the array does");
    error_expected(error, "bytes up to %lld",
                   (long long)(p->file.mapping_begin + p->file.mapping_bytes));
    error_found(error, "an end at byte %lld", (long long)st.st_size);
    return GAD_SHORT_READ;
}

static void order_axes(struct port *p)
{
    for (int i = 0; i < p->array.ndim; i++) {
        int64_t stride = llabs(p->array.strides[i]);
        int place = i;
        for (; place > 0 && llabs(p->array.strides[p->file.order[place - 1]]) < stride; place--)
            p->file.order[place] = p->file.order[place - 1];
        p->file.order[place] = i;
    }
}

/* What is large and not in memory anyhow may go around the cache. */
static void choose_writing(struct port *p, const struct port_context *context, int64_t first_byte)
{
    if (p->file.is_in_memory || !writing_is_large((uint64_t)array_n_bytes(&p->array)))
        return;
    p->file.writing = context->writing;
    p->file.writing->device = writing_find(context->devices, p->file.device);
    p->file.writing->first_byte = first_byte;
    p->file.writing->no_choice_before =
        first_byte + (int64_t)writing_no_choice_bytes((uint64_t)array_n_bytes(&p->array));
}

static bool may_read(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) == O_RDWR;
}

int port_open_file(struct port *p, const struct port_context *context, struct gad_error *error)
{
    int64_t low, high, first, end;
    int r = port_file_init(p, context, p->array.at.file.fd_index, error);
    if (r)
        return r;
    p->ops = &file_ops;
    array_extent(&p->array, &low, &high);
    uint64_t offset = p->array.at.file.offset_bytes;
    if (offset > INT64_MAX || add_overflows_i64((int64_t)offset, low, &first) || first < 0 ||
        add_overflows_i64((int64_t)offset, high, &end))
        return error_set(error, GAD_BAD_EXTENT, p->name, "the array's bytes are not in any file");
    if (!context->is_output && array_n_elements(&p->array) > 0 && end > p->file.size_bytes) {
        error_set(error, GAD_SHORT_READ, p->name, "the file ends before the array does");
        error_expected(error, "%lld bytes", (long long)end);
        error_found(error, "%lld bytes", (long long)p->file.size_bytes);
        return GAD_SHORT_READ;
    }
    order_axes(p);
    if (context->is_output) {
        choose_writing(p, context, first);
        p->file.gaps = context->gaps;
        p->file.may_span = context->gaps && may_read(p->file.fd);
    }
    return 0;
}
