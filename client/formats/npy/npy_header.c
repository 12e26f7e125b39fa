/* The npy header: magic, version, length, and a Python dict as text.
 *
 *     \x93NUMPY  major  minor  length (2 bytes; versions 2 and 3: 4 bytes)  text ... \n
 *
 * The dict must have exactly the keys descr, fortran_order and shape, each once, in any order, as
 * NumPy itself demands. Of descr only the plain dtypes that are served pass; the others are refused
 * by name, so that whoever reads the message knows what the file holds.
 *
 * Pure functions of bytes: called by npy.c for files, and by the fuzz target.
 */
#include "client/formats/npy/npy_header.h"
#include "client/formats/npy/npy_literal.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

static const char magic[6] = "\x93NUMPY";

#define DESCR_CHARS 80 /* of a descr that is shown in a message */

enum key { KEY_DESCR, KEY_FORTRAN_ORDER, KEY_SHAPE, KEY_COUNT };

static const char *const key_names[KEY_COUNT] = {"descr", "fortran_order", "shape"};

int npy_header_size(const void *bytes, size_t n_bytes, const char *name, size_t *ret_n_bytes,
                    struct gad_error *error)
{
    const uint8_t *b = bytes;
    size_t n_magic = n_bytes < sizeof(magic) ? n_bytes : sizeof(magic);
    if (n_bytes == 0 || memcmp(b, magic, n_magic) != 0) {
        error_set(error, GAD_BAD_FORMAT, name,
                  "not an npy file: it does not begin with \\x93NUMPY");
        error_expected(error, "\\x93NUMPY");
        error_found(error, n_bytes ? "other bytes" : "an empty file");
        return GAD_BAD_FORMAT;
    }
    unsigned major = n_bytes >= 8 ? b[6] : 0, minor = n_bytes >= 8 ? b[7] : 0;
    size_t preamble = major == 1 ? 10 : NPY_PREAMBLE_BYTES;
    if (n_bytes >= 8 && (major < 1 || major > 3 || minor != 0)) {
        error_set(error, GAD_BAD_FORMAT, name, "npy version %u.%u is not known", major, minor);
        error_expected(error, "version 1.0, 2.0 or 3.0");
        error_found(error, "version %u.%u", major, minor);
        return GAD_BAD_FORMAT;
    }
    if (n_bytes < preamble) {
        error_set(error, GAD_SHORT_READ, name, "the file ends inside the npy header");
        error_expected(error, "at least %zu bytes", preamble);
        error_found(error, "%zu bytes", n_bytes);
        return GAD_SHORT_READ;
    }
    uint32_t length = (uint32_t)b[8] | (uint32_t)b[9] << 8;
    if (major > 1)
        length |= (uint32_t)b[10] << 16 | (uint32_t)b[11] << 24;
    if (length > NPY_MAX_HEADER_BYTES) {
        error_set(error, GAD_BAD_FORMAT, name, "the npy header is too long");
        error_expected(error, "at most %u bytes", NPY_MAX_HEADER_BYTES);
        error_found(error, "%u bytes", length);
        return GAD_BAD_FORMAT;
    }
    *ret_n_bytes = preamble + length;
    return 0;
}

static int refuse(struct gad_error *error, const char *name, const char *why)
{
    return error_set(error, GAD_BAD_FORMAT, name, "the npy header is not usable: %s", why);
}

/* A stretch of the header for a message: bounded, printable. */
static void copy_printable(const char *text, size_t n_chars, char *buffer, size_t n_bytes)
{
    size_t n = n_chars < n_bytes - 1 ? n_chars : n_bytes - 1;
    for (size_t i = 0; i < n; i++)
        buffer[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    buffer[n] = '\0';
    if (n < n_chars && n >= 3)
        memcpy(buffer + n - 3, "...", 3);
}

/* What kind of thing a typestr is that is not served; text without its byte order. */
static const char *describe_descr(const char *text, size_t n_chars)
{
    if (n_chars && strchr("<>|=", *text)) {
        text++;
        n_chars--;
    }
    switch (n_chars ? *text : '\0') {
    case 'O': return "Python objects (pickles), which only Python can read";
    case 'c': return "complex numbers";
    case 'f':
        return n_chars == 2 && text[1] == '2'
                   ? "floats of 16 bits: convert it once, as by np.load(f).astype('f4')"
                   : "floats of an unusual size";
    case 'U':
    case 'S':
    case 'a': return "text";
    case 'M':
    case 'm': return "dates or times";
    case 'V': return "opaque bytes";
    default: return "a dtype that is not known";
    }
}

/* ret_what: who asks only wants to know; else NULL. */
static int refuse_descr(const char *text, size_t n_chars, const char *what, const char *name,
                        char *ret_what, struct gad_error *error)
{
    char shown[DESCR_CHARS];
    copy_printable(text, n_chars, shown, sizeof(shown));
    if (ret_what) {
        snprintf(ret_what, NPY_WHAT_SIZE, "%s: %s", shown, what);
        return 0;
    }
    error_set(error, GAD_BAD_DTYPE, name, "dtype %s is not served: the file holds %s", shown, what);
    error_expected(error, "bool, int8 to int64, uint8 to uint64, float32 or float64");
    error_found(error, "%s", shown);
    return GAD_BAD_DTYPE;
}

static int parse_descr(struct literal *in, const char *name, struct npy_header *header,
                       char *ret_what, struct gad_error *error)
{
    const char *text;
    size_t n_chars;
    if (literal_string(in, &text, &n_chars)) {
        if (dtype_from_typestr(text, n_chars, &header->dtype, &header->is_swapped, NULL) == 0)
            return 0;
        return refuse_descr(text, n_chars, describe_descr(text, n_chars), name, ret_what, error);
    }
    text = in->at;
    if (!literal_skip(in))
        return refuse(error, name, "descr cannot be read");
    n_chars = (size_t)(in->at - text);
    bool is_structured = n_chars && (*text == '[' || *text == '(' || *text == '{');
    return refuse_descr(text, n_chars,
                        is_structured ? "structured elements" : "a dtype that is not known", name,
                        ret_what, error);
}

static int parse_dim(struct literal *in, const char *name, struct npy_header *header,
                     struct gad_error *error)
{
    int64_t dim;
    bool fits;
    if (!literal_int(in, &dim, &fits))
        return refuse(error, name, "shape is no tuple of integers");
    if (fits && dim >= 0 && header->ndim < ARRAY_MAX_NDIM) {
        header->shape[header->ndim++] = dim;
        return 0;
    }
    if (header->ndim == ARRAY_MAX_NDIM) {
        error_set(error, GAD_BAD_SHAPE, name, "the array has more than %d dimensions",
                  ARRAY_MAX_NDIM);
        error_expected(error, "at most %d dimensions", ARRAY_MAX_NDIM);
        error_found(error, "more");
        return GAD_BAD_SHAPE;
    }
    error_set(error, GAD_BAD_SHAPE, name, "dimension %d of the shape is %s", header->ndim,
              fits ? "negative" : "beyond 64 bits");
    error_expected(error, "0 to %lld", (long long)INT64_MAX);
    if (fits)
        error_found(error, "%lld", (long long)dim);
    else
        error_found(error, "more than 64 bits");
    return GAD_BAD_SHAPE;
}

/* (), (3,), (3, 4), (3, 4,) */
static int parse_shape(struct literal *in, const char *name, struct npy_header *header,
                       struct gad_error *error)
{
    if (!literal_take(in, '('))
        return refuse(error, name, "shape is no tuple");
    bool has_comma = false;
    while (!literal_take(in, ')')) {
        if (header->ndim > 0 && !has_comma)
            return refuse(error, name, "shape is no tuple of integers");
        int r = parse_dim(in, name, header, error);
        if (r)
            return r;
        has_comma = literal_take(in, ',');
    }
    if (header->ndim == 1 && !has_comma)
        return refuse(error, name, "shape is a number, not a tuple");
    return 0;
}

static int parse_value(struct literal *in, enum key key, const char *name,
                       struct npy_header *header, char *ret_what, struct gad_error *error)
{
    switch (key) {
    case KEY_DESCR: return parse_descr(in, name, header, ret_what, error);
    case KEY_SHAPE: return parse_shape(in, name, header, error);
    case KEY_FORTRAN_ORDER:
        if (!literal_bool(in, &header->fortran_order))
            return refuse(error, name, "fortran_order is neither True nor False");
        return 0;
    case KEY_COUNT: break;
    }
    return refuse(error, name, "unknown key");
}

static int parse_key(struct literal *in, const char *name, enum key *ret_key,
                     struct gad_error *error)
{
    const char *text;
    size_t n_chars;
    if (!literal_string(in, &text, &n_chars) || !literal_take(in, ':'))
        return refuse(error, name, "it is no dict of strings to values");
    for (int k = 0; k < KEY_COUNT; k++) {
        if (strlen(key_names[k]) == n_chars && memcmp(key_names[k], text, n_chars) == 0) {
            *ret_key = (enum key)k;
            return 0;
        }
    }
    char shown[DESCR_CHARS];
    copy_printable(text, n_chars, shown, sizeof(shown));
    error_set(error, GAD_BAD_FORMAT, name, "the npy header has an unknown key '%s'", shown);
    error_expected(error, "descr, fortran_order, shape");
    error_found(error, "'%s'", shown);
    return GAD_BAD_FORMAT;
}

static int parse_dict(struct literal *in, const char *name, struct npy_header *header,
                      char *ret_what, struct gad_error *error)
{
    bool seen[KEY_COUNT] = {false};
    if (!literal_take(in, '{'))
        return refuse(error, name, "it is no dict");
    bool has_comma = true;
    while (!literal_take(in, '}')) {
        enum key key = KEY_DESCR;
        if (!has_comma)
            return refuse(error, name, "a comma or } is missing");
        int r = parse_key(in, name, &key, error);
        if (r)
            return r;
        if (seen[key])
            return error_set(error, GAD_BAD_FORMAT, name, "the npy header has %s twice",
                             key_names[key]);
        seen[key] = true;
        r = parse_value(in, key, name, header, ret_what, error);
        if (r)
            return r;
        has_comma = literal_take(in, ',');
    }
    if (!literal_is_at_end(in))
        return refuse(error, name, "something follows the dict");
    for (int k = 0; k < KEY_COUNT; k++)
        if (!seen[k])
            return error_set(error, GAD_BAD_FORMAT, name, "the npy header has no %s", key_names[k]);
    return 0;
}

static int parse(const void *bytes, size_t n_bytes, const char *name, struct npy_header *ret_header,
                 char *ret_what, struct gad_error *error)
{
    size_t size;
    int r = npy_header_size(bytes, n_bytes, name, &size, error);
    if (r)
        return r;
    if (n_bytes < size) {
        error_set(error, GAD_SHORT_READ, name, "the file ends inside the npy header");
        error_expected(error, "%zu bytes", size);
        error_found(error, "%zu bytes", n_bytes);
        return GAD_SHORT_READ;
    }
    const char *text = bytes;
    struct npy_header header = {.data_offset_bytes = size};
    struct literal in = {.at = text + (text[6] == 1 ? 10 : NPY_PREAMBLE_BYTES), .end = text + size};
    r = parse_dict(&in, name, &header, ret_what, error);
    if (r)
        return r;
    struct array array = {.dtype = header.dtype, .ndim = header.ndim};
    memcpy(array.shape, header.shape, sizeof(array.shape));
    r = array_check(&array, name, error);
    if (r)
        return r;
    *ret_header = header;
    return 0;
}

int npy_header_parse(const void *bytes, size_t n_bytes, const char *name,
                     struct npy_header *ret_header, struct gad_error *error)
{
    return parse(bytes, n_bytes, name, ret_header, NULL, error);
}

int npy_header_look(const void *bytes, size_t n_bytes, const char *name,
                    struct npy_header *ret_header, char ret_what[NPY_WHAT_SIZE],
                    struct gad_error *error)
{
    ret_what[0] = '\0';
    return parse(bytes, n_bytes, name, ret_header, ret_what, error);
}

void npy_header_format(enum dtype dtype, int ndim, const int64_t *shape, bool fortran_order,
                       char ret_bytes[NPY_DATA_OFFSET])
{
    const size_t length = NPY_DATA_OFFSET - 10;
    char *text = ret_bytes + 10;
    memset(text, ' ', length);
    memcpy(ret_bytes, magic, sizeof(magic));
    ret_bytes[6] = 1;
    ret_bytes[7] = 0;
    ret_bytes[8] = (char)(length & 0xff);
    ret_bytes[9] = (char)(length >> 8);
    int n = snprintf(text, length, "{'descr': '%s', 'fortran_order': %s, 'shape': (",
                     dtype_typestr(dtype, false), fortran_order ? "True" : "False");
    for (int i = 0; i < ndim; i++)
        n += snprintf(text + n, length - (size_t)n, "%lld%s", (long long)shape[i],
                      i + 1 < ndim ? ", " : (ndim == 1 ? "," : ""));
    n += snprintf(text + n, length - (size_t)n, "), }");
    text[n] = ' ';
    ret_bytes[NPY_DATA_OFFSET - 1] = '\n';
}
