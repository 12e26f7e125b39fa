/* Decoding one array of several that share a message's descriptors. Inside proto/. */
#pragma once

#include "proto/wire/frame.h"
#include "proto/request.h"

struct used_fds { /* zeroed: none */
    bool is_used[FRAME_MAX_FDS];
};

/* As array_decode(); n_fds is at most FRAME_MAX_FDS. *ret_array is overwritten also on failure. */
int array_decode_with(const msgpack_object *map, const char *name, unsigned n_fds,
                      struct used_fds *used_fds, bool needs_at, struct array *ret_array,
                      struct gad_error *error) GAD_MUST_CHECK;
/* The descriptor's index that `map` has under `key`. name: what errors are about. */
int descriptor_decode_with(const msgpack_object *map, const char *name, const char *key,
                           unsigned n_fds, struct used_fds *used_fds, uint32_t *ret_index,
                           struct gad_error *error) GAD_MUST_CHECK;
