/* Metadata documents of Zarr.
 *
 * They are somebody else's: a file is read up to a limit, parsed strictly, as UTF-8, and nested
 * no deeper than DEPTH. Members of another type than they should have are as good as absent for
 * those who ask for a type; who needs one refuses with zarr_bad(), which shows what stands there.
 *
 * Called by the other files of Zarr.
 */
#include "client/formats/zarr/zarr_json.h"
#include "client/formats/files/file_source.h"
#include "proto/array.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DEPTH 64

void json_put(struct json_object **object)
{
    json_object_put(*object);
    *object = NULL;
}

static int parse_error(const struct zarr_doc *doc, const char *reason, size_t at)
{
    error_set(doc->error, GAD_BAD_FORMAT, doc->name, "'%.160s' is no JSON: %s at byte %zu",
              doc->file, reason, at);
    error_expected(doc->error, "a JSON object");
    error_found(doc->error, "%s", reason);
    return GAD_BAD_FORMAT;
}

int zarr_json_parse(const char *text, size_t n_bytes, const struct zarr_doc *doc,
                    struct json_object **ret_object)
{
    struct json_tokener *tokener = json_tokener_new_ex(DEPTH);
    if (!tokener)
        return error_from_errno(doc->error, ENOMEM, doc->name, doc->file);
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    while (n_bytes > 0 && strchr(" \t\r\n", text[n_bytes - 1]) && text[n_bytes - 1])
        n_bytes--;
    _cleanup_json_ struct json_object *object =
        json_tokener_parse_ex(tokener, text, (int)min_u64(n_bytes, INT32_MAX));
    enum json_tokener_error fault = json_tokener_get_error(tokener);
    size_t end = json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    if (fault == json_tokener_continue)
        return parse_error(doc, "it ends too early", n_bytes);
    if (fault != json_tokener_success)
        return parse_error(doc, json_tokener_error_desc(fault), end);
    if (!json_object_is_type(object, json_type_object))
        return parse_error(doc, "it is no object", 0);
    *ret_object = steal_ptr(object);
    return 0;
}

static int read_file(int fd, const struct zarr_doc *doc, struct json_object **ret_object)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return file_path_error(doc->error, errno, doc->file, doc->name);
    int r = file_check_stored(fd, &st, doc->file, doc->name, doc->error);
    if (r)
        return r;
    if ((uint64_t)st.st_size > ZARR_MAX_DOCUMENT) {
        error_set(doc->error, GAD_LIMIT_EXCEEDED, doc->name, "'%.160s' is too long for metadata",
                  doc->file);
        error_expected(doc->error, "at most %" PRIu64 " bytes", ZARR_MAX_DOCUMENT);
        error_found(doc->error, "%jd", (intmax_t)st.st_size);
        return GAD_LIMIT_EXCEEDED;
    }
    size_t n_bytes = 0;
    _cleanup_free_ char *text = malloc((size_t)st.st_size + 1);
    if (!text)
        return error_from_errno(doc->error, ENOMEM, doc->name, doc->file);
    r = file_read(fd, text, (size_t)st.st_size, 0, &n_bytes);
    if (r < 0)
        return file_path_error(doc->error, -r, doc->file, doc->name);
    return zarr_json_parse(text, n_bytes, doc, ret_object);
}

int zarr_json_read(int dir_fd, const char *file, const struct zarr_doc *doc,
                   struct json_object **ret_object)
{
    _cleanup_fd_ int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *ret_object = NULL;
    if (fd < 0)
        return errno == ENOENT ? 0 : file_path_error(doc->error, errno, doc->file, doc->name);
    return read_file(fd, doc, ret_object);
}

struct json_object *zarr_member(struct json_object *object, const char *key)
{
    struct json_object *member = NULL;
    if (json_object_is_type(object, json_type_object))
        (void)json_object_object_get_ex(object, key, &member);
    return member;
}

static const char *text_of(struct json_object *object)
{
    return json_object_is_type(object, json_type_string) ? json_object_get_string(object) : NULL;
}

const char *zarr_text(struct json_object *object, const char *key)
{
    return text_of(zarr_member(object, key));
}

int64_t zarr_integer(struct json_object *object, const char *key, int64_t otherwise)
{
    struct json_object *member = zarr_member(object, key);
    return json_object_is_type(member, json_type_int) ? json_object_get_int64(member) : otherwise;
}

struct json_object *zarr_configuration(struct json_object *object)
{
    return zarr_member(object, "configuration");
}

const char *zarr_name(struct json_object *object)
{
    const char *text = text_of(object);
    return text ? text : zarr_text(object, "name");
}

int zarr_bad(const struct zarr_doc *doc, const char *key, struct json_object *found,
             const char *expected, ...)
{
    char wanted[160];
    va_list args;
    va_start(args, expected);
    vsnprintf(wanted, sizeof(wanted), expected, args);
    va_end(args);
    const char *there =
        found ? json_object_to_json_string_ext(found, JSON_C_TO_STRING_PLAIN) : "nothing";
    error_set(doc->error, GAD_BAD_FORMAT, doc->name, "'%.120s': '%.60s' must be %s, not %.60s",
              doc->file, key, wanted, there);
    error_expected(doc->error, "%s", wanted);
    error_found(doc->error, "%.100s", there);
    return GAD_BAD_FORMAT;
}

int zarr_sizes(const struct zarr_doc *doc, struct json_object *list, const char *key, int64_t least,
               int *ret_n, int64_t *ret_values)
{
    if (!json_object_is_type(list, json_type_array))
        return zarr_bad(doc, key, list, "a list of integers");
    size_t n = json_object_array_length(list);
    if (*ret_n >= 0 && n != (size_t)*ret_n)
        return zarr_bad(doc, key, list, "a list of %d integers, one for each dimension", *ret_n);
    if (n > ARRAY_MAX_NDIM) {
        error_set(doc->error, GAD_BAD_SHAPE, doc->name, "'%.160s': '%s' has %zu dimensions",
                  doc->file, key, n);
        error_expected(doc->error, "at most %d dimensions", ARRAY_MAX_NDIM);
        error_found(doc->error, "%zu", n);
        return GAD_BAD_SHAPE;
    }
    for (size_t i = 0; i < n; i++) {
        struct json_object *value = json_object_array_get_idx(list, i);
        if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < least)
            return zarr_bad(doc, key, list, "a list of integers of %" PRId64 " or more", least);
        ret_values[i] = json_object_get_int64(value);
    }
    *ret_n = (int)n;
    return 0;
}
