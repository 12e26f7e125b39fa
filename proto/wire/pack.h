/* Packing named values: what stands in a message's map. */
#pragma once

#include "proto/error.h"

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>

void pack_str(msgpack_packer *p, const char *text);
void pack_key_str(msgpack_packer *p, const char *key, const char *text);
void pack_key_u64(msgpack_packer *p, const char *key, uint64_t value);
void pack_key_i64(msgpack_packer *p, const char *key, int64_t value);
void pack_key_f64(msgpack_packer *p, const char *key, double value);
void pack_key_bool(msgpack_packer *p, const char *key, bool value);
void pack_error_map(msgpack_packer *p, const struct gad_error *error); /* as one map */
/* Verbatim msgpack bytes (a message's payload). */
void pack_raw(msgpack_packer *p, const void *bytes, size_t n_bytes);
