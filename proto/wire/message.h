/* msgpack-RPC envelopes.
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
/* Memory for short messages, which cannot fail from then on. 0 or -ENOMEM. */
int message_writer_reserve(struct message_writer *w) GAD_MUST_CHECK;
void message_begin_request(struct message_writer *w, uint32_t id, const char *method);
void message_begin_notification(struct message_writer *w, const char *method);
void message_begin_result(struct message_writer *w, uint32_t id); /* then one object */
void message_error(struct message_writer *w, uint32_t id,
                   const struct gad_error *error); /* whole */
