/* Keeping rows: a source is read once, in order, a piece of whole units at a time, and written to
 * memory or to scratch space, which is reserved before.
 *
 * The file has no name, so that nothing of it is left when the process ends, however it does.
 */
#include "client/rows/kept.h"
#include "client/formats/files/file_output.h"
#include "client/formats/files/file_source.h"
#include "client/rows/large_memory.h"
#include "proto/util.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#define PIECE_BYTES (INT64_C(32) << 20)
#define PIECE_ROWS  (INT64_C(1) << 19)

int rows_scratch_open(const char *folder, const char *argument, int *ret_fd,
                      struct gad_error *error)
{
    _cleanup_free_ char *path = NULL;
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) { /* not on every file system */
        if (asprintf(&path, "%s/.gpuarrayd-scratch-XXXXXX", folder) < 0)
            return error_from_errno(error, ENOMEM, argument, "scratch space");
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0)
            unlink(path);
    }
    if (fd < 0 && errno == ENOTDIR)
        return error_set(error, GAD_NOT_FOUND, argument, "'%.200s' is no folder", folder);
    if (fd < 0)
        return file_path_error(error, errno, folder, argument);
    *ret_fd = fd;
    return 0;
}

uint64_t rows_scratch_free(int fd)
{
    struct statvfs fs;
    uint64_t bytes;
    if (fstatvfs(fd, &fs) || fs.f_blocks == 0)
        return UINT64_MAX;
    return __builtin_mul_overflow((uint64_t)fs.f_bavail, (uint64_t)fs.f_frsize, &bytes) ? UINT64_MAX
                                                                                        : bytes;
}

static int64_t piece_rows(const struct row_source *source)
{
    int64_t n = min_i64(PIECE_BYTES / (int64_t)source->row_bytes, PIECE_ROWS);
    n = max_i64(n / source->unit_rows, 1) * source->unit_rows;
    return min_i64(n, max_i64(source->n_rows, 1));
}

/* Rows [first, first + n) in order. A positive errno; ret_failure says of which. */
static int read_piece(struct row_source *source, int64_t first, int64_t n, char *to, int64_t *rows,
                      const atomic_bool *is_cancelled, struct row_failure *ret_failure)
{
    const struct gather_options options = {.is_cancelled = is_cancelled};
    const struct row_target target = {&to, (uint64_t)n, source->row_bytes};
    struct row_order order;
    for (int64_t i = 0; i < n; i++)
        rows[i] = first + i;
    if (row_order_init(&order, (uint64_t)n, rows))
        return ENOMEM;
    int r = gather(source, &order, &target, &options, ret_failure);
    row_order_deinit(&order);
    return r;
}

/* To memory at `to`, or through it, a piece, to a file. */
static int keep(struct row_source *source, char *to, int fd, const atomic_bool *is_cancelled,
                const char *name, struct gad_error *error)
{
    int64_t step = piece_rows(source);
    _cleanup_free_ int64_t *rows = malloc((size_t)step * sizeof(*rows));
    if (!rows)
        return error_from_errno(error, ENOMEM, name, "rows");
    for (int64_t first = 0; first < source->n_rows; first += step) {
        int64_t n = min_i64(step, source->n_rows - first);
        size_t at = (size_t)first * source->row_bytes;
        struct row_failure failure;
        int r = read_piece(source, first, n, fd < 0 ? to + at : to, rows, is_cancelled, &failure);
        if (r == ECANCELED)
            return error_set(error, GAD_CANCELLED, name, "nobody wants the rows any more");
        if (r && failure.n == 0)
            return error_from_errno(error, r, name, "reading rows");
        if (r)
            return row_source_explain(source, failure.first, failure.n, r, name, error);
        r = fd < 0 ? 0 : file_write(fd, to, (size_t)n * source->row_bytes, at);
        if (r)
            return error_from_errno(error, -r, name, "writing to scratch space");
    }
    return 0;
}

static int finish(const struct row_source *source, char *memory_take, int fd_take, const char *name,
                  struct row_source *ret_kept, struct gad_error *error)
{
    struct gad_array *array = fd_take < 0 ? row_source_in_memory(source, memory_take)
                                          : row_source_in_file(source, fd_take);
    if (!array) {
        free(memory_take);
        close_fd(&fd_take);
        return error_from_errno(error, ENOMEM, name, "rows");
    }
    int r = row_source_init(ret_kept, array, name, error);
    gad_array_release(array);
    return r;
}

int rows_keep(struct row_source *source, const char *folder, const atomic_bool *is_cancelled,
              const char *name, struct row_source *ret_kept, struct gad_error *error)
{
    _cleanup_fd_ int fd = -1;
    bool is_reserved;
    size_t n_bytes = (size_t)source->n_rows * source->row_bytes;
    int r = folder ? rows_scratch_open(folder, name, &fd, error) : 0;
    if (r == 0 && folder && n_bytes > 0)
        r = file_reserve(fd, 0, n_bytes, folder, name, &is_reserved, error);
    if (r)
        return r;
    size_t most = source->row_bytes ? (size_t)piece_rows(source) * source->row_bytes : 0;
    _cleanup_free_ char *memory = large_alloc((folder ? most : n_bytes) + 1);
    if (!memory)
        return error_from_errno(error, ENOMEM, name, "rows");
    r = source->row_bytes ? keep(source, memory, fd, is_cancelled, name, error) : 0;
    return r ? r
             : finish(source, folder ? NULL : steal_ptr(memory), steal_fd(&fd), name, ret_kept,
                      error);
}
