/* Metadata documents of Zarr: read whole within a limit, and taken apart with errors that name the
 * file and the key. */
#pragma once

#include "proto/error.h"

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#define ZARR_MAX_DOCUMENT (UINT64_C(32) << 20) /* bytes; as objects it takes many times that */

/* What an error says of where something stands. */
struct zarr_doc {
    const char *file; /* as users know it: "x.zarr/a/.zarray" */
    const char *name; /* the argument */
    struct gad_error *error;
};

void json_put(struct json_object **object);
#define _cleanup_json_ __attribute__((cleanup(json_put)))

/* The object of a document of n_bytes. bad-format, no-memory. */
int zarr_json_parse(const char *text, size_t n_bytes, const struct zarr_doc *doc,
                    struct json_object **ret_object) GAD_MUST_CHECK;
/* The same of a file in a directory. ret_object NULL: there is no such file. */
int zarr_json_read(int dir_fd, const char *file, const struct zarr_doc *doc,
                   struct json_object **ret_object) GAD_MUST_CHECK;

/* Members, or NULL: a null is none. */
struct json_object *zarr_member(struct json_object *object, const char *key);
/* A member's text; NULL: none, or no text. */
const char *zarr_text(struct json_object *object, const char *key);
/* A member that is an integer of 64 bits, else `otherwise`. */
int64_t zarr_integer(struct json_object *object, const char *key, int64_t otherwise);
/* What a codec or a grid says of itself; NULL: nothing. */
struct json_object *zarr_configuration(struct json_object *object);
/* Of { "name": ... }, or a text: the short form of an extension; NULL: neither. */
const char *zarr_name(struct json_object *object);

/* `key` holds what it must not: bad-format with what was expected and found. */
int zarr_bad(const struct zarr_doc *doc, const char *key, struct json_object *found,
             const char *expected, ...) GAD_PRINTF(4, 5);
/* A list of integers, at least `least` each, and at most ARRAY_MAX_NDIM of them. ret_n in: how many
 * there must be, or -1. */
int zarr_sizes(const struct zarr_doc *doc, struct json_object *list, const char *key, int64_t least,
               int *ret_n, int64_t *ret_values) GAD_MUST_CHECK;
