/* msgpack-RPC envelopes, and reading named values out of maps.
 *
 *     request       [0, id, method, [params]]
 *     response      [1, id, error, result]
 *     notification  [2, method, [params]]
 *
 * The params are one map; an error is nil or a map {code, argument, message, ...}.
 */
#pragma once

#include "proto/error.h"
#include "proto/wire/frame.h"

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>

#define PROTOCOL_VERSION 1u /* agreed in hello */

enum message_kind { MESSAGE_REQUEST, MESSAGE_RESPONSE, MESSAGE_NOTIFICATION };

struct message {
    enum message_kind kind;
    uint32_t id; /* of requests and responses */
    const char *method;
    unsigned n_method_chars;
    msgpack_object params; /* a map; of requests and notifications */
    msgpack_object error;  /* nil or map */
    msgpack_object result;
    /* Where the bytes of params (or of result) lie in the body, to be passed on verbatim. */
    const char *payload;
    size_t n_payload_bytes;
    msgpack_zone *zone;
};

/* The body must have passed frame_body_check() and outlive the message (strings and binaries point
 * into it). ret_message->id is set as soon as it is known, with *ret_has_id, so that a malformed
 * request can be answered (false after a malformed response: there is nothing to answer). 0,
 * bad-request, -ENOMEM. */
int message_decode(const void *body, size_t size_bytes, struct message *ret_message,
                   bool *ret_has_id, struct gad_error *error) GAD_MUST_CHECK;
void message_deinit(struct message *message);
bool message_is(const struct message *message, const char *method);

/* Building one: begin (drops what was there), pack the params or result with `packer`, then send
 * buffer.data/size. The packer points at the writer: a writer must not move. */
struct message_writer {
    msgpack_sbuffer buffer; /* empty when memory was short: conn_send() refuses that */
    msgpack_packer packer;
    bool has_failed;
};
void message_writer_init(struct message_writer *w);
void message_writer_deinit(struct message_writer *w);
void message_writer_clear(struct message_writer *w); /* keeps its memory */
void message_begin_request(struct message_writer *w, uint32_t id, const char *method);
void message_begin_notification(struct message_writer *w, const char *method);
void message_begin_result(struct message_writer *w, uint32_t id); /* then one object */
void message_error(struct message_writer *w, uint32_t id,
                   const struct gad_error *error); /* whole */

/* Packing named values. */
void pack_str(msgpack_packer *p, const char *text);
void pack_key_str(msgpack_packer *p, const char *key, const char *text);
void pack_key_u64(msgpack_packer *p, const char *key, uint64_t value);
void pack_key_i64(msgpack_packer *p, const char *key, int64_t value);
void pack_key_f64(msgpack_packer *p, const char *key, double value);
void pack_key_bool(msgpack_packer *p, const char *key, bool value);
void pack_error_map(msgpack_packer *p, const struct gad_error *error); /* as one map */
/* Verbatim msgpack bytes (a message's payload). */
void pack_raw(msgpack_packer *p, const void *bytes, size_t n_bytes);

/* Reading a map. map_find(): NULL when absent (or when `map` is no map). The others leave *ret
 * untouched and return 0 when the key is absent; bad-request when it is of another type or out of
 * range; `require` variants also when it is absent. */
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
void error_from_map(const msgpack_object *map, struct gad_error *ret_error);
