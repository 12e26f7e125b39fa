/* Reading named values out of a peer's map.
 *
 * map_find() gives NULL when the key is absent (or when `map` is no map). The others leave *ret
 * untouched and return 0 when the key is absent; bad-request when it is of another type or out of
 * range; `require` variants also when it is absent. */
#pragma once

#include "proto/error.h"

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>

const msgpack_object *map_find(const msgpack_object *map, const char *key);
int map_u64(const msgpack_object *map, const char *key, uint64_t *ret,
            struct gad_error *error) GAD_MUST_CHECK;
int map_require_u64(const msgpack_object *map, const char *key, uint64_t *ret,
                    struct gad_error *error) GAD_MUST_CHECK;
int map_i64(const msgpack_object *map, const char *key, int64_t *ret,
            struct gad_error *error) GAD_MUST_CHECK;
int map_f64(const msgpack_object *map, const char *key, double *ret,
            struct gad_error *error) GAD_MUST_CHECK; /* integers are accepted too */
int map_bool(const msgpack_object *map, const char *key, bool *ret,
             struct gad_error *error) GAD_MUST_CHECK;
/* Points into the body, without NUL; *ret NULL stays when absent. */
int map_str(const msgpack_object *map, const char *key, const char **ret, size_t *ret_n_chars,
            struct gad_error *error) GAD_MUST_CHECK;
int map_require_str(const msgpack_object *map, const char *key, const char **ret,
                    size_t *ret_n_chars, struct gad_error *error) GAD_MUST_CHECK;
/* Copies with NUL; bad-request when it does not fit or has a NUL inside. */
int map_copy_str(const msgpack_object *map, const char *key, char *ret, size_t n_bytes,
                 struct gad_error *error) GAD_MUST_CHECK;

/* An error map of the wire back into a struct. */
void map_error(const msgpack_object *map, struct gad_error *ret_error);
