/* The beginning of a pipe: an npy header, or the words that stand for one.
 *
 * Called by stream_pipe.c and from_pipe.c.
 */
#include "client/lib/memory/pipe_header.h"
#include "client/formats/formats.h"
#include "proto/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* All of them, or fewer where it ends: how many. A negative errno. */
static ssize_t read_all(int fd, void *ret_bytes, size_t n_bytes)
{
    size_t n_read = 0;
    while (n_read < n_bytes) {
        ssize_t n = read(fd, (char *)ret_bytes + n_read, n_bytes - n_read);
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        n_read += (size_t)n;
    }
    return (ssize_t)n_read;
}

int pipe_read_failed(int number, const char *what, const char *name, struct gad_error *error)
{
    if (number == EINTR)
        return error_set(error, GAD_CANCELLED, name, "interrupted by a signal");
    return error_from_errno(error, number, name, what);
}

int pipe_read_header(int fd, const char *name, struct npy_header *ret_header,
                     struct gad_error *error)
{
    size_t n_bytes;
    char preamble[NPY_PREAMBLE_BYTES], *header;
    ssize_t n = read_all(fd, preamble, sizeof(preamble));
    if (n < 0)
        return pipe_read_failed((int)-n, "reading the npy header", name, error);
    int r = npy_header_size(preamble, (size_t)n, name, &n_bytes, error);
    if (r)
        return r;
    header = malloc(max_u64(n_bytes, sizeof(preamble)));
    if (!header)
        return -ENOMEM;
    memcpy(header, preamble, sizeof(preamble));
    if (n_bytes > sizeof(preamble))
        n = read_all(fd, header + sizeof(preamble), n_bytes - sizeof(preamble));
    if (n < 0)
        r = pipe_read_failed((int)-n, "reading the npy header", name, error);
    else
        r = npy_header_parse(header, min_u64(n_bytes, sizeof(preamble) + (size_t)n), name,
                             ret_header, error);
    free(header);
    return r;
}

int pipe_read_form(const char *form, const char *name, struct npy_header *ret_header,
                   struct gad_error *error)
{
    struct spec spec = {.path = (char *)name};
    char rest[512];
    if (snprintf(rest, sizeof(rest), ":%s", form) >= (int)sizeof(rest))
        return error_set(error, GAD_BAD_ARGUMENT, name, "too long for DTYPE:SHAPE");
    if (strpbrk(rest, "[]")) {
        error_set(error, GAD_BAD_ARGUMENT, name, "a pipe has no parts: it comes once");
        error_expected(error, "DTYPE:SHAPE, or a file of it");
        error_found(error, "%.100s", form);
        return GAD_BAD_ARGUMENT;
    }
    int r = format_parse_raw(rest, name, &spec, error);
    if (r == 0 && spec.offset_bytes > 0)
        r = error_set(error, GAD_BAD_ARGUMENT, name, "a pipe has no offset");
    if (r)
        return r;
    *ret_header = (struct npy_header){
        .dtype = spec.dtype,
        .is_swapped = spec.is_swapped,
        .ndim = spec.ndim,
    };
    memcpy(ret_header->shape, spec.shape, sizeof(ret_header->shape));
    return 0;
}
