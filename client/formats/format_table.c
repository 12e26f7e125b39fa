/* The table of formats: one row each, in the order in which errors name them. Who adds a format
 * writes its row into a file of its own (format_impl.h), and names it here. What else says names
 * and extensions (gpuarrayd.h, the Python package) is compared with the rows by test_package.py.
 */
#include "client/formats/files/file_source.h"
#include "client/formats/format_impl.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAGIC_BYTES 8 /* by which files are told apart */

static const struct format *const formats[] = {&format_npy,  &format_npz,    &format_raw,
                                               &format_hdf5, &format_netcdf, &format_zarr};

static bool has_extension(const struct format *format, const char *text, size_t n_chars)
{
    for (const char *at = format->extensions; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (n_chars > n && text[n_chars - n - 1] != '/' &&
            strncasecmp(text + n_chars - n, at, n) == 0)
            return true;
        at += n;
    }
    return false;
}

const struct format *format_at(size_t i)
{
    return i < ARRAY_LENGTH(formats) ? formats[i] : NULL;
}

const struct format *format_of_name(const char *text, size_t n_chars)
{
    for (size_t i = 0; i < ARRAY_LENGTH(formats); i++)
        if (has_extension(formats[i], text, n_chars))
            return formats[i];
    return NULL;
}

const struct format *format_of_file(const struct format *named, const char *path)
{
    uint8_t bytes[MAGIC_BYTES];
    size_t n_bytes;
    struct stat st;
    _cleanup_fd_ int fd = -1;
    if (!named->is_own || file_source_open(path, false, path, &fd, &st, NULL) ||
        file_read(fd, bytes, sizeof(bytes), 0, &n_bytes))
        return named;
    for (size_t i = 0; i < ARRAY_LENGTH(formats); i++)
        if (formats[i]->is_own && formats[i]->normalise == named->normalise &&
            formats[i]->is_own(bytes, n_bytes))
            return formats[i];
    return named;
}

const char *format_names(char *buffer, size_t n_bytes)
{
    size_t used = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(formats) && used < n_bytes; i++)
        used += (size_t)snprintf(buffer + used, n_bytes - used, "%s%s", i > 0 ? ", " : "",
                                 formats[i]->written);
    return buffer;
}
