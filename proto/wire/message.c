/* Envelopes of msgpack-RPC: decoding a body, building one.
 *
 * The envelope itself (array, kind, id, method, array of one) is read by hand: that tells the id
 * before anything else can be wrong, and where the bytes of the params begin, so that a broker can
 * pass them on verbatim. Only the params (or the error, or the result) go through msgpack-c, with
 * msgpack_unpack_next() on a complete body that has passed frame_body_check(). What it makes
 * points into the body, so the body must outlive the message.
 *
 * A writer holds one message. Without memory it becomes, and stays until the next begin, an empty
 * buffer, which conn_send() refuses: half a message is never sent.
 */
#include "proto/wire/message.h"

#include "proto/util.h"
#include "proto/wire/pack.h"

#include <string.h>

#define WRITER_KEPT_BYTES  (64u * 1024u)
#define WRITER_FIRST_BYTES 4096u
#define MAX_METHOD_CHARS   64u

/* Reading the envelope ----------------------------------------------------------------------- */

struct cursor {
    const uint8_t *at, *end;
    const uint8_t *begin;
};

static bool read_big_endian(struct cursor *c, size_t n, uint64_t *ret)
{
    if ((size_t)(c->end - c->at) < n)
        return false;
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value = value << 8 | *c->at++;
    *ret = value;
    return true;
}

static bool read_array(struct cursor *c, uint64_t *ret_count)
{
    if (c->at == c->end)
        return false;
    uint8_t first = *c->at++;
    *ret_count = first & 0x0f;
    if (first == 0xdc || first == 0xdd)
        return read_big_endian(c, first == 0xdc ? 2 : 4, ret_count);
    return (first & 0xf0) == 0x90;
}

static bool read_unsigned(struct cursor *c, uint64_t *ret)
{
    if (c->at == c->end)
        return false;
    uint8_t first = *c->at++;
    *ret = first;
    if (first >= 0xcc && first <= 0xcf)
        return read_big_endian(c, (size_t)1 << (first - 0xcc), ret);
    if (first < 0xd0 || first > 0xd3)
        return first < 0x80;
    /* Signed types may hold what is not negative. */
    return read_big_endian(c, (size_t)1 << (first - 0xd0), ret) &&
           *ret >> ((8u << (first - 0xd0)) - 1) == 0;
}

static bool read_text(struct cursor *c, const char **ret, uint64_t *ret_n_chars)
{
    if (c->at == c->end)
        return false;
    uint8_t first = *c->at++;
    *ret_n_chars = first & 0x1f;
    if (first >= 0xd9 && first <= 0xdb) {
        if (!read_big_endian(c, (size_t)1 << (first - 0xd9), ret_n_chars))
            return false;
    } else if ((first & 0xe0) != 0xa0) {
        return false;
    }
    if (*ret_n_chars > (uint64_t)(c->end - c->at))
        return false;
    *ret = (const char *)c->at;
    c->at += *ret_n_chars;
    return true;
}

static int malformed(struct gad_error *error, const char *what)
{
    return error_set(error, GAD_BAD_REQUEST, NULL, "malformed message: %s", what);
}

/* Decodes the object at the cursor and moves it behind. */
static int unpack_next(struct cursor *c, struct message *message, msgpack_object *ret_object,
                       struct gad_error *error)
{
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    size_t n_used = 0;
    msgpack_unpack_return r =
        msgpack_unpack_next(&unpacked, (const char *)c->at, (size_t)(c->end - c->at), &n_used);
    if (r != MSGPACK_UNPACK_SUCCESS && r != MSGPACK_UNPACK_EXTRA_BYTES) {
        msgpack_unpacked_destroy(&unpacked);
        /* msgpack-c says the same of both. */
        if (frame_body_check(c->begin, (size_t)(c->end - c->begin)) == 0)
            return -ENOMEM;
        return malformed(error, "an object is not complete or nested too deep");
    }
    c->at += n_used;
    msgpack_zone_free(message->zone);
    message->zone = unpacked.zone;
    *ret_object = unpacked.data;
    return 0;
}

/* [params]: one map; or nothing, which stands for an empty map. */
static int decode_params(struct cursor *c, struct message *message, struct gad_error *error)
{
    static const char empty_map = (char)0x80;
    uint64_t n_params;
    if (!read_array(c, &n_params) || n_params > 1)
        return malformed(error, "params are not an array of one map");
    message->params.type = MSGPACK_OBJECT_MAP;
    message->payload = &empty_map;
    message->n_payload_bytes = 1;
    if (n_params == 1) {
        const uint8_t *begin = c->at;
        int r = unpack_next(c, message, &message->params, error);
        if (r)
            return r;
        if (message->params.type != MSGPACK_OBJECT_MAP)
            return malformed(error, "params are not an array of one map");
        message->payload = (const char *)begin;
        message->n_payload_bytes = (size_t)(c->at - begin);
    }
    return c->at == c->end ? 0 : malformed(error, "bytes behind its end");
}

static int decode_call(struct cursor *c, struct message *message, struct gad_error *error)
{
    uint64_t n_chars;
    if (!read_text(c, &message->method, &n_chars) || n_chars > MAX_METHOD_CHARS)
        return malformed(error, "the method is not a text of at most 64 characters");
    message->n_method_chars = (unsigned)n_chars;
    return decode_params(c, message, error);
}

static int decode_response(struct cursor *c, struct message *message, struct gad_error *error)
{
    int r = unpack_next(c, message, &message->error, error);
    if (r)
        return r;
    message->payload = (const char *)c->at;
    message->n_payload_bytes = (size_t)(c->end - c->at);
    if (message->error.type == MSGPACK_OBJECT_NIL) {
        r = unpack_next(c, message, &message->result, error);
        if (r)
            return r;
    } else if (message->error.type != MSGPACK_OBJECT_MAP) {
        return malformed(error, "the error is neither nil nor a map");
    } else if (c->at == c->end || *c->at++ != 0xc0) {
        return malformed(error, "an error with a result");
    }
    return c->at == c->end ? 0 : malformed(error, "bytes behind its end");
}

static int decode_envelope(struct cursor *c, struct message *message, bool *ret_has_id,
                           struct gad_error *error)
{
    uint64_t n_parts, kind, id;
    if (!read_array(c, &n_parts) || n_parts == 0 || !read_unsigned(c, &kind) ||
        kind > MESSAGE_NOTIFICATION)
        return malformed(error, "not an array that begins with 0, 1 or 2");
    message->kind = (enum message_kind)kind;
    if (kind == MESSAGE_NOTIFICATION)
        return n_parts == 3 ? decode_call(c, message, error)
                            : malformed(error, "a notification has three parts");
    if (!read_unsigned(c, &id) || id > UINT32_MAX)
        return malformed(error, "the id is not an unsigned 32-bit number");
    message->id = (uint32_t)id;
    *ret_has_id = true;
    if (n_parts != 4)
        return malformed(error, "requests and responses have four parts");
    return kind == MESSAGE_REQUEST ? decode_call(c, message, error)
                                   : decode_response(c, message, error);
}

int message_decode(const void *body, size_t size_bytes, struct message *ret_message,
                   bool *ret_has_id, struct gad_error *error)
{
    struct cursor c = {.at = body, .end = (const uint8_t *)body + size_bytes, .begin = body};
    *ret_message = (struct message){.payload = ""};
    *ret_has_id = false;
    int r = decode_envelope(&c, ret_message, ret_has_id, error);
    if (r == 0)
        return 0;
    if (ret_message->kind != MESSAGE_REQUEST)
        *ret_has_id = false; /* nothing to answer */
    message_deinit(ret_message);
    return r;
}

void message_deinit(struct message *message)
{
    if (message == NULL)
        return;
    msgpack_zone_free(steal_ptr(message->zone));
}

bool message_is(const struct message *message, const char *method)
{
    return message->method != NULL && strlen(method) == message->n_method_chars &&
           memcmp(method, message->method, message->n_method_chars) == 0;
}

/* Building one ------------------------------------------------------------------------------- */

/* msgpack-c's packers do not look at the outcome, so a failure is kept: nothing is appended any
 * more, and the buffer is left empty. */
static int append(void *data, const char *bytes, size_t n_bytes)
{
    struct message_writer *w = data;
    if (w->has_failed)
        return -1;
    if (n_bytes == 0) /* `bytes` may be NULL */
        return 0;
    if (msgpack_sbuffer_write(&w->buffer, bytes, n_bytes) == 0)
        return 0;
    w->has_failed = true;
    msgpack_sbuffer_clear(&w->buffer);
    return -1;
}

void message_writer_init(struct message_writer *w)
{
    msgpack_sbuffer_init(&w->buffer);
    msgpack_packer_init(&w->packer, w, append);
    w->has_failed = false;
}

void message_writer_deinit(struct message_writer *w)
{
    msgpack_sbuffer_destroy(&w->buffer);
    msgpack_sbuffer_init(&w->buffer);
}

int message_writer_reserve(struct message_writer *w)
{
    char *data = w->buffer.data ? w->buffer.data : malloc(WRITER_FIRST_BYTES);
    if (!data)
        return -ENOMEM;
    w->buffer.alloc = max_u64(w->buffer.alloc, WRITER_FIRST_BYTES);
    w->buffer.data = data;
    return 0;
}

void message_writer_clear(struct message_writer *w)
{
    if (w->buffer.alloc > WRITER_KEPT_BYTES) {
        char *less = realloc(w->buffer.data, WRITER_FIRST_BYTES);
        w->buffer.alloc = less ? WRITER_FIRST_BYTES : w->buffer.alloc;
        w->buffer.data = less ? less : w->buffer.data;
    }
    msgpack_sbuffer_clear(&w->buffer);
    w->has_failed = false;
}

void message_begin_request(struct message_writer *w, uint32_t id, const char *method)
{
    message_writer_clear(w);
    msgpack_pack_array(&w->packer, 4);
    msgpack_pack_uint8(&w->packer, MESSAGE_REQUEST);
    msgpack_pack_uint32(&w->packer, id);
    pack_str(&w->packer, method);
    msgpack_pack_array(&w->packer, 1);
}

void message_begin_notification(struct message_writer *w, const char *method)
{
    message_writer_clear(w);
    msgpack_pack_array(&w->packer, 3);
    msgpack_pack_uint8(&w->packer, MESSAGE_NOTIFICATION);
    pack_str(&w->packer, method);
    msgpack_pack_array(&w->packer, 1);
}

void message_begin_result(struct message_writer *w, uint32_t id)
{
    message_writer_clear(w);
    msgpack_pack_array(&w->packer, 4);
    msgpack_pack_uint8(&w->packer, MESSAGE_RESPONSE);
    msgpack_pack_uint32(&w->packer, id);
    msgpack_pack_nil(&w->packer);
}

void message_error(struct message_writer *w, uint32_t id, const struct gad_error *error)
{
    message_writer_clear(w);
    msgpack_pack_array(&w->packer, 4);
    msgpack_pack_uint8(&w->packer, MESSAGE_RESPONSE);
    msgpack_pack_uint32(&w->packer, id);
    pack_error_map(&w->packer, error);
    msgpack_pack_nil(&w->packer);
}
