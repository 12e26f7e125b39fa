/* Named values into a message's map. Called by whoever writes a request, an answer or a
 * notification; the packer notices by itself when memory is short (message.c). */
#include "proto/wire/pack.h"

#include "proto/util.h"

#include <string.h>

static void pack_text(msgpack_packer *p, const char *text, size_t n_chars)
{
    msgpack_pack_str(p, n_chars);
    msgpack_pack_str_body(p, text, n_chars);
}

void pack_str(msgpack_packer *p, const char *text)
{
    pack_text(p, text, strlen(text));
}

void pack_key_str(msgpack_packer *p, const char *key, const char *text)
{
    pack_str(p, key);
    pack_str(p, text);
}

void pack_key_u64(msgpack_packer *p, const char *key, uint64_t value)
{
    pack_str(p, key);
    msgpack_pack_uint64(p, value);
}

void pack_key_i64(msgpack_packer *p, const char *key, int64_t value)
{
    pack_str(p, key);
    msgpack_pack_int64(p, value);
}

void pack_key_f64(msgpack_packer *p, const char *key, double value)
{
    pack_str(p, key);
    msgpack_pack_double(p, value);
}

void pack_key_bool(msgpack_packer *p, const char *key, bool value)
{
    pack_str(p, key);
    if (value)
        msgpack_pack_true(p);
    else
        msgpack_pack_false(p);
}

void pack_raw(msgpack_packer *p, const void *bytes, size_t n_bytes)
{
    p->callback(p->data, bytes, n_bytes);
}

void pack_error_map(msgpack_packer *p, const struct gad_error *error)
{
    const char *optional[][2] = {
        {"argument", error->argument}, {"expected", error->expected}, {"found", error->found}};
    size_t n_keys = 2;
    for (size_t i = 0; i < ARRAY_LENGTH(optional); i++)
        n_keys += optional[i][1][0] != '\0';
    msgpack_pack_map(p, n_keys);
    pack_key_str(p, "code", error_word(error->status));
    for (size_t i = 0; i < ARRAY_LENGTH(optional); i++)
        if (optional[i][1][0] != '\0')
            pack_key_str(p, optional[i][0], optional[i][1]);
    pack_key_str(p, "message", error->message[0] ? error->message : error_text(error->status));
}
