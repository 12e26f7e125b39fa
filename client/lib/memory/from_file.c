/* Arrays over a descriptor that the caller has open.
 *
 * What a program has mapped or opened itself, a NumPy memmap above all, is handed to the daemon as
 * a file with an offset and strides; where the daemon does not read the file system itself, the
 * pump's thread reads and writes the descriptor (file_provider). The library's own duplicate shares
 * the open file description, so nothing is changed on it: no flags, no position.
 *
 * The daemon checks the descriptor again. It is done here too, because the caller's program is
 * where a wrong one can be explained.
 */
#include "client/formats/files/file_provider.h"
#include "client/formats/files/file_source.h"
#include "client/lib/connection/client.h"
#include "client/lib/memory/memory.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

static int bad_descriptor(struct gad_error *error, const char *expected, const char *found)
{
    error_set(error, GAD_BAD_DESCRIPTOR, "fd", "the descriptor is %s", found);
    error_expected(error, "%s", expected);
    error_found(error, "%s", found);
    return GAD_BAD_DESCRIPTOR;
}

/* How it is open. The kernel refuses most of what is asked here, but only in the middle of a job.
 */
static int check_mode(int fd, bool is_writable, struct gad_error *error)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return bad_descriptor(error, "an open descriptor", "not open");
    if (flags & O_PATH)
        return bad_descriptor(error, "open for reading", "a path only (O_PATH)");
    if ((flags & O_ACCMODE) == O_WRONLY)
        return bad_descriptor(error, "open for reading", "open for writing only");
    if (is_writable && (flags & O_ACCMODE) != O_RDWR)
        return bad_descriptor(error, "open for reading and writing", "open for reading only");
    if (is_writable && (flags & O_APPEND))
        return bad_descriptor(error, "open without O_APPEND", "open for appending");
    if (flags & O_DIRECT) /* offsets and lengths would have to be whole sectors */
        return bad_descriptor(error, "open without O_DIRECT", "open with O_DIRECT");
    return 0;
}

static int check_size(int fd, const struct array *described, uint64_t offset_bytes,
                      struct gad_error *error)
{
    struct stat st;
    char name[32];
    int64_t low, high;
    snprintf(name, sizeof(name), "descriptor %d", fd);
    if (fstat(fd, &st) < 0)
        return file_path_error(error, errno, name, "fd");
    int r = file_check_stored(fd, &st, name, "fd", error);
    if (r || array_n_elements(described) == 0)
        return r;
    array_extent(described, &low, &high);
    uint64_t end = offset_bytes + (uint64_t)high; /* array_check() was there */
    if (end <= (uint64_t)st.st_size)
        return 0;
    error_set(error, GAD_SHORT_READ, "fd",
              "the file holds %" PRIu64 " bytes, offset, shape and strides need %" PRIu64,
              (uint64_t)st.st_size, end);
    error_expected(error, "%" PRIu64 " bytes", end);
    error_found(error, "%" PRIu64 " bytes", (uint64_t)st.st_size);
    return GAD_SHORT_READ;
}

static int describe(int fd, const struct gad_layout *layout, uint64_t offset_bytes,
                    bool is_writable, struct array *ret, struct gad_error *error)
{
    int r = memory_describe(layout, ret, error);
    if (r)
        return r;
    ret->at.kind = LOCATION_FILE;
    ret->at.file.offset_bytes = offset_bytes;
    r = array_check(ret, "layout", error);
    if (r == 0)
        r = check_mode(fd, is_writable, error);
    return r ? r : check_size(fd, ret, offset_bytes, error);
}

enum gad_status gad_array_from_file(struct gad_client *client, int fd,
                                    const struct gad_layout *layout, uint64_t offset_bytes,
                                    bool is_writable, struct gad_array **ret_array,
                                    struct gad_error *error)
{
    struct array described;
    if (!client || !ret_array)
        return error_set(error, GAD_BAD_ARGUMENT, client ? "ret_array" : "client", "is NULL");
    int r = describe(fd, layout, offset_bytes, is_writable, &described, error);
    if (r)
        return client_status(r, error);
    struct gad_array *array = array_new(client, "file", ACCESS_FILE, NULL);
    if (!array)
        return client_status(-ENOMEM, error);
    memory_fill_info(array, &described);
    array->is_writable = is_writable;
    array->offset_bytes = offset_bytes;
    array->provider = &file_provider;
    array->provider_state = array;
    array->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (array->fd < 0) {
        r = error_from_errno(error, errno, "fd", "duplicating a descriptor");
        gad_array_release(array);
        return (enum gad_status)r;
    }
    *ret_array = array;
    return GAD_OK;
}
