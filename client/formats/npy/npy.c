/* npy files: NumPy's own format, one array in a file.
 *
 * Read: versions 1 to 3, C and Fortran order, either byte order, in place where they lie: the
 * daemon gets the descriptor and the offset behind the header. Written: version 1.0 with the header
 * padded to 4096 bytes, so that the elements begin on a page and a block.
 *
 * Called by format.c.
 */
#include "client/formats/files/file_array.h"
#include "client/formats/files/file_source.h"
#include "client/formats/format_impl.h"
#include "client/formats/npy/npy_header.h"
#include "client/formats/files/plain_output.h"
#include "proto/util.h"

#include <string.h>

#define USUAL_HEADER_BYTES 128 /* as NumPy writes it */

static int read_some(int fd, void *buffer, size_t n_bytes, const struct spec *spec,
                     const char *name, size_t *ret_n_bytes, struct gad_error *error)
{
    int r = file_read(fd, buffer, n_bytes, 0, ret_n_bytes);
    return r < 0 ? file_path_error(error, -r, spec->path, name) : 0;
}

/* Files that are opened together have the same header, mostly. */
static int parse_header(const uint8_t *bytes, size_t n_bytes, const char *name,
                        struct npy_header *ret_header, struct gad_error *error)
{
    static _Thread_local struct {
        size_t n_bytes;
        uint8_t bytes[USUAL_HEADER_BYTES];
        struct npy_header header;
    } last;
    if (n_bytes > 0 && n_bytes == last.n_bytes && memcmp(bytes, last.bytes, n_bytes) == 0) {
        *ret_header = last.header;
        return 0;
    }
    int r = npy_header_parse(bytes, n_bytes, name, ret_header, error);
    if (r || n_bytes > sizeof(last.bytes))
        return r;
    memcpy(last.bytes, bytes, n_bytes);
    last.n_bytes = n_bytes;
    last.header = *ret_header;
    return 0;
}

/* One call reads most headers: NumPy's of 128 bytes, and ours. */
static int read_header(int fd, const struct spec *spec, const char *name,
                       struct npy_header *ret_header, struct gad_error *error)
{
    uint8_t begin[NPY_DATA_OFFSET];
    size_t n_bytes, n_header_bytes;
    int r = read_some(fd, begin, sizeof(begin), spec, name, &n_bytes, error);
    if (r == 0)
        r = npy_header_size(begin, n_bytes, name, &n_header_bytes, error);
    if (r)
        return r;
    if (n_header_bytes <= n_bytes)
        return parse_header(begin, n_header_bytes, name, ret_header, error);
    _cleanup_free_ void *header = malloc(n_header_bytes);
    if (!header)
        return error_from_errno(error, ENOMEM, name, "npy header");
    r = read_some(fd, header, n_header_bytes, spec, name, &n_bytes, error);
    return r ? r : npy_header_parse(header, n_bytes, name, ret_header, error);
}

static int open_array(struct gad_array *array, const struct spec *spec, const char *name,
                      struct gad_error *error)
{
    struct stat st;
    struct npy_header header;
    int r = file_source_open(spec->path, array->is_writable, name, &array->fd, &st, error);
    if (r == 0)
        r = read_header(array->fd, spec, name, &header, error);
    if (r)
        return r;
    struct file_layout layout = {
        .dtype = header.dtype,
        .is_swapped = header.is_swapped,
        .fortran_order = header.fortran_order,
        .ndim = header.ndim,
        .shape = header.shape,
        .offset_bytes = header.data_offset_bytes,
    };
    r = file_array_describe(array, &layout, name, error);
    return r ? r : file_array_check_size(array, (uint64_t)st.st_size, name, error);
}

static int npy_open(struct gad_client *client, const struct spec *spec, const char *name,
                    bool for_writing, struct gad_array **ret_array, struct gad_error *error)
{
    return file_array_open(client, spec, name, for_writing, open_array, ret_array, error);
}

static int npy_create(struct gad_client *client, const struct format_target *target,
                      struct gad_array **ret_array, struct gad_error *error)
{
    char header[NPY_DATA_OFFSET];
    npy_header_format(target->dtype, target->ndim, target->shape,
                      target->fortran_order && target->ndim > 1, header);
    return plain_output_new(client, target, header, sizeof(header), ret_array, error);
}

static int parse_rest(const char *rest, const char *whole, bool is_output, struct spec *spec,
                      struct gad_error *error)
{
    if (*rest)
        return error_set(error, GAD_BAD_ARGUMENT, whole, "nothing may follow the path of %s",
                         spec->path);
    return 0;
}

const struct format format_npy = {
    .name = "npy",
    .extensions = ".npy",
    .written = "FILE.npy",
    .takes_brackets = true,
    .parse_rest = parse_rest,
    .open = npy_open,
    .create = npy_create,
};
