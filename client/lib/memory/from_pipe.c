/* Arrays of what comes through a pipe, for who reads them in an order of their own or again.
 *
 *     pipe --read()--> file without a name --> an array in a file, like any other
 *
 * All of it is read before there is an array. The file is in the folder for temporary ones and goes
 * with the array, or with the process, however that ends. What is no pipe but a file already stays
 * where it is: the array is of that one.
 *
 * Called by programs; for what is read once and in order there are streams (stream_pipe.c).
 */
#include "client/formats/files/file_source.h"
#include "client/lib/connection/client.h"
#include "client/lib/memory/memory.h"
#include "client/lib/memory/pipe_header.h"
#include "client/rows/kept.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#define PIECE_BYTES ((size_t)1 << 20)

struct piped {
    const char *name;
    struct npy_header header;
    uint64_t row_bytes, total_bytes; /* the latter where the number of rows is known */
    bool is_open;                    /* it is not */
};

/* Lengths -------------------------------------------------------------------------------------- */

static int measure(struct piped *piped, struct gad_error *error)
{
    struct npy_header *header = &piped->header;
    struct array one = {.dtype = header->dtype, .ndim = header->ndim};
    memcpy(one.shape, header->shape, sizeof(one.shape));
    piped->is_open = header->ndim > 0 && header->shape[0] == GAD_UNKNOWN_LENGTH;
    if (piped->is_open)
        one.shape[0] = 1;
    int r = array_check(&one, piped->name, error);
    if (r)
        return r;
    piped->row_bytes = piped->total_bytes = (uint64_t)array_n_bytes(&one);
    if (!piped->is_open || piped->row_bytes > 0)
        return 0;
    error_set(error, GAD_BAD_SHAPE, piped->name,
              "rows without elements cannot be of unknown number");
    error_expected(error, "the number of rows");
    error_found(error, "?");
    return GAD_BAD_SHAPE;
}

static int wrong_length(const struct piped *piped, uint64_t found, struct gad_error *error)
{
    bool is_long = !piped->is_open && found > piped->total_bytes;
    int status = is_long ? GAD_BAD_SHAPE : GAD_SHORT_READ;
    error_set(error, status, piped->name, "%s",
              is_long          ? "the pipe has more than its array"
              : piped->is_open ? "the pipe ended in the middle of a row"
                               : "the pipe ended before the array was complete");
    if (piped->is_open)
        error_expected(error, "whole rows of %" PRIu64 " bytes", piped->row_bytes);
    else
        error_expected(error, "%" PRIu64 " bytes of elements", piped->total_bytes);
    if (is_long)
        error_found(error, "more");
    else
        error_found(error, "%" PRIu64 " bytes", found);
    return status;
}

static int check_length(struct piped *piped, uint64_t found, struct gad_error *error)
{
    if (piped->is_open && found % piped->row_bytes == 0) {
        piped->header.shape[0] = (int64_t)(found / piped->row_bytes);
        return 0;
    }
    return !piped->is_open && found == piped->total_bytes ? 0 : wrong_length(piped, found, error);
}

/* The file ------------------------------------------------------------------------------------- */

static int too_little_space(const struct piped *piped, const char *folder, uint64_t there,
                            struct gad_error *error)
{
    error_set(error, GAD_NO_SPACE, piped->name, "no room for what comes through the pipe in %.100s",
              folder);
    error_expected(error, "%" PRIu64 " bytes, there or where TMPDIR says", piped->total_bytes);
    error_found(error, "%" PRIu64 " bytes", there);
    return GAD_NO_SPACE;
}

static int open_scratch(const struct piped *piped, int *ret_fd, struct gad_error *error)
{
    const char *const folders[] = {secure_getenv("TMPDIR"), "/var/tmp", "/tmp"};
    int r = GAD_NOT_FOUND;
    for (size_t i = 0; i < ARRAY_LENGTH(folders) && r; i++) {
        _cleanup_fd_ int fd = -1;
        if (!folders[i] || !*folders[i])
            continue;
        r = rows_scratch_open(folders[i], piped->name, &fd, error);
        if (r == 0 && !piped->is_open && rows_scratch_free(fd) < piped->total_bytes)
            r = too_little_space(piped, folders[i], rows_scratch_free(fd), error);
        if (r == 0)
            *ret_fd = steal_fd(&fd);
    }
    return r;
}

/* Until the pipe's end, or beyond that of the array. */
static int copy(const struct piped *piped, int from, int to, uint64_t *ret_n_bytes,
                struct gad_error *error)
{
    _cleanup_free_ void *piece = malloc(PIECE_BYTES);
    if (!piece)
        return error_from_errno(error, ENOMEM, piped->name, "what comes through a pipe");
    (void)fcntl(from, F_SETPIPE_SZ, (int)PIECE_BYTES); /* fewer calls; as it is will do */
    for (*ret_n_bytes = 0; piped->is_open || *ret_n_bytes <= piped->total_bytes;) {
        ssize_t n = read(from, piece, PIECE_BYTES);
        if (n < 0)
            return pipe_read_failed(errno, "reading the elements", piped->name, error);
        if (n == 0)
            break;
        int r = file_write(to, piece, (size_t)n, *ret_n_bytes);
        if (r)
            return error_from_errno(error, -r, piped->name, "writing to scratch space");
        *ret_n_bytes += (uint64_t)n;
    }
    return 0;
}

static int make(struct gad_client *client, const struct piped *piped, int fd, uint64_t offset_bytes,
                struct gad_array **ret_array, struct gad_error *error)
{
    const struct npy_header *header = &piped->header;
    int64_t strides[GAD_MAX_NDIM], stride = (int64_t)dtype_size(header->dtype);
    for (int i = 0; i < header->ndim; i++) { /* of Fortran order */
        strides[i] = stride;
        stride *= max_i64(header->shape[i], 1);
    }
    const struct gad_layout layout = {.dtype = (enum gad_dtype)header->dtype,
                                      .is_swapped = header->is_swapped,
                                      .ndim = header->ndim,
                                      .shape = header->shape,
                                      .strides = header->fortran_order ? strides : NULL};
    return (int)gad_array_from_file(client, fd, &layout, offset_bytes, false, ret_array, error);
}

/* What is a file already, behind what was read of it. */
static int take_file(struct gad_client *client, struct piped *piped, int fd, uint64_t n_file_bytes,
                     struct gad_array **ret_array, struct gad_error *error)
{
    off_t at = lseek(fd, 0, SEEK_CUR);
    if (at < 0)
        return error_from_errno(error, errno, piped->name, "the place in a file");
    uint64_t offset = (uint64_t)at, n_bytes = n_file_bytes > offset ? n_file_bytes - offset : 0;
    int r = check_length(piped, n_bytes, error);
    return r ? r : make(client, piped, fd, offset, ret_array, error);
}

static int take_pipe(struct gad_client *client, struct piped *piped, int fd,
                     struct gad_array **ret_array, struct gad_error *error)
{
    _cleanup_fd_ int scratch = -1;
    uint64_t n_bytes = 0;
    int r = open_scratch(piped, &scratch, error);
    if (r == 0)
        r = copy(piped, fd, scratch, &n_bytes, error);
    if (r == 0)
        r = check_length(piped, n_bytes, error);
    return r ? r : make(client, piped, scratch, 0, ret_array, error);
}

enum gad_status gad_array_from_pipe(struct gad_client *client, int fd, const char *form,
                                    const char *name, struct gad_array **ret_array,
                                    struct gad_error *error)
{
    struct piped piped = {.name = name};
    struct stat st;
    if (!client || !name || !ret_array)
        return error_set(error, GAD_BAD_ARGUMENT,
                         !client ? "client"
                         : !name ? "name"
                                 : "ret_array",
                         "is NULL");
    int r = fstat(fd, &st) < 0 ? error_from_errno(error, errno, name, "the pipe") : 0;
    if (r == 0)
        r = form ? pipe_read_form(form, name, &piped.header, error)
                 : pipe_read_header(fd, name, &piped.header, error);
    if (r == 0)
        r = measure(&piped, error);
    if (r == 0)
        r = S_ISREG(st.st_mode)
                ? take_file(client, &piped, fd, (uint64_t)st.st_size, ret_array, error)
                : take_pipe(client, &piped, fd, ret_array, error);
    return client_status(r, error);
}
