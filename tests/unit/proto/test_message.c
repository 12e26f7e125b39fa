/* Envelopes, writers, named values. */
#include "proto/wire/map.h"
#include "proto/wire/message.h"
#include "proto/wire/pack.h"
#include "tests/unit/proto/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static int decode(const struct message_writer *w, struct message *message, bool *has_id)
{
    struct gad_error error;
    cr_assert(eq(int, frame_body_check(w->buffer.data, w->buffer.size), 0));
    return message_decode(w->buffer.data, w->buffer.size, message, has_id, &error);
}

Test(message, a_request_leads_back)
{
    struct message_writer w;
    struct message message;
    bool has_id;
    uint64_t version = 0;
    message_writer_init(&w);
    message_begin_request(&w, 77, "hello");
    pack_json(&w.packer, "{'version': 1, 'client': 'test'}");
    cr_assert(eq(int, decode(&w, &message, &has_id), 0));
    cr_assert(eq(int, message.kind, MESSAGE_REQUEST));
    cr_assert(has_id);
    cr_assert(eq(u32, message.id, 77));
    cr_assert(message_is(&message, "hello"));
    cr_assert(not(message_is(&message, "hell")));
    cr_assert(not(message_is(&message, "hello!")));
    cr_assert(eq(int, map_require_u64(&message.params, "version", &version, NULL), 0));
    cr_assert(eq(u64, version, 1));
    message_deinit(&message);
    message_writer_deinit(&w);
}

Test(message, the_payload_can_be_passed_on_verbatim)
{
    struct message_writer w, passed;
    struct message message, again;
    bool has_id;
    message_writer_init(&w);
    message_writer_init(&passed);
    message_begin_request(&w, 1, "job.run");
    pack_json(&w.packer, "{'a': [1, 2.5, {'b': nil}], 'c': <300>}");
    cr_assert(eq(int, decode(&w, &message, &has_id), 0));
    message_begin_notification(&passed, "job.start");
    pack_raw(&passed.packer, message.payload, message.n_payload_bytes);
    cr_assert(eq(int, decode(&passed, &again, &has_id), 0));
    cr_assert(not(has_id));
    cr_assert(eq(sz, again.n_payload_bytes, message.n_payload_bytes));
    cr_assert(eq(int, memcmp(again.payload, message.payload, message.n_payload_bytes), 0));
    message_deinit(&message);
    message_deinit(&again);
    message_writer_deinit(&w);
    message_writer_deinit(&passed);
}

Test(message, a_result_leads_back)
{
    struct message_writer w;
    struct message message;
    bool has_id, flag = false;
    message_writer_init(&w);
    message_begin_result(&w, UINT32_MAX);
    pack_json(&w.packer, "{'flag': true}");
    cr_assert(eq(int, decode(&w, &message, &has_id), 0));
    cr_assert(eq(int, message.kind, MESSAGE_RESPONSE));
    cr_assert(has_id);
    cr_assert(eq(u32, message.id, UINT32_MAX));
    cr_assert(eq(int, message.error.type, MSGPACK_OBJECT_NIL));
    cr_assert(eq(int, map_bool(&message.result, "flag", &flag, NULL), 0));
    cr_assert(flag);
    cr_assert(eq(sz, message.n_payload_bytes, 7));
    message_deinit(&message);
    message_writer_deinit(&w);
}

Test(message, an_error_leads_back)
{
    struct message_writer w;
    struct message message;
    struct gad_error sent, got;
    bool has_id;
    (void)error_set(&sent, GAD_BAD_SHAPE, "a", "inner dimensions differ");
    error_expected(&sent, "(3,)");
    error_found(&sent, "(4,)");
    message_writer_init(&w);
    message_error(&w, 5, &sent);
    cr_assert(eq(int, decode(&w, &message, &has_id), 0));
    cr_assert(eq(int, message.result.type, MSGPACK_OBJECT_NIL));
    map_error(&message.error, &got);
    cr_assert(eq(int, got.status, GAD_BAD_SHAPE));
    cr_assert(eq(str, got.argument, "a"));
    cr_assert(eq(str, got.expected, "(3,)"));
    cr_assert(eq(str, got.found, "(4,)"));
    cr_assert(eq(str, got.message, "inner dimensions differ"));
    message_deinit(&message);
    message_writer_deinit(&w);
}

Test(message, an_error_map_of_anything_gives_a_whole_error)
{
    static const char *const rows[] = {
        "{}",
        "{'code': 5, 'message': [1], 'argument': nil}",
        "{'code': 'no-such-code'}",
        "[1, 2]",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct message_writer w;
        struct gad_error error;
        message_writer_init(&w);
        pack_json(&w.packer, rows[i]);
        msgpack_unpacked unpacked;
        msgpack_unpacked_init(&unpacked);
        cr_assert(eq(int, msgpack_unpack_next(&unpacked, w.buffer.data, w.buffer.size, NULL),
                     MSGPACK_UNPACK_SUCCESS));
        memset(&error, 'x', sizeof(error));
        map_error(&unpacked.data, &error);
        cr_assert(eq(int, error.status, GAD_INTERNAL));
        cr_assert(eq(str, error.message, ""));
        msgpack_unpacked_destroy(&unpacked);
        message_writer_deinit(&w);
    }
}

Test(message, the_id_of_a_malformed_request_is_known)
{
    static const struct {
        const char *text;
        bool has_id;
    } rows[] = {
        {"[0, 9, 'm']", true},
        {"[0, 9, 5, [{}]]", true},
        {"[0, 9, 'm', {}]", true},
        {"[0, 9, 'm', [1]]", true},
        {"[0, 9, 'm', [{}, {}]]", true},
        {"[0, 9, 'm', [{}], 1]", true},
        {"[0, -1, 'm', [{}]]", false},
        {"[0, 4294967296, 'm', [{}]]", false},
        {"[0, 'id', 'm', [{}]]", false},
        {"[0]", false},
        {"[]", false},
        {"[3, 9, 'm', [{}]]", false},
        {"[-1, 9, 'm', [{}]]", false},
        {"{}", false},
        {"5", false},
        {"[1, 9, nil]", false},
        {"[1, 9, 'text', nil]", false},
        {"[1, 9, {}, 5]", false},
        {"[2, 'm']", false},
        {"[2, 'm', [{}], 1]", false},
        {"[2, 5, [{}]]", false},
        {"[2, '0123456789012345678901234567890123456789012345678901234567890123x', [{}]]", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct message_writer w;
        struct message message;
        struct gad_error error;
        bool has_id;
        message_writer_init(&w);
        pack_json(&w.packer, rows[i].text);
        int r = message_decode(w.buffer.data, w.buffer.size, &message, &has_id, &error);
        cr_assert(eq(int, r, GAD_BAD_REQUEST), "%s", rows[i].text);
        cr_assert(eq(int, error.status, GAD_BAD_REQUEST));
        cr_assert(eq(int, has_id, rows[i].has_id), "%s", rows[i].text);
        if (has_id)
            cr_assert(eq(u32, message.id, 9));
        message_deinit(&message); /* again, harmless */
        message_writer_deinit(&w);
    }
}

Test(message, params_may_be_left_out)
{
    struct message_writer w;
    struct message message;
    bool has_id;
    message_writer_init(&w);
    pack_json(&w.packer, "[0, 1, 'ping', []]");
    cr_assert(eq(int, decode(&w, &message, &has_id), 0));
    cr_assert(eq(int, message.params.type, MSGPACK_OBJECT_MAP));
    cr_assert(eq(u32, message.params.via.map.size, 0));
    cr_assert(eq(sz, message.n_payload_bytes, 1));
    cr_assert(eq(int, (uint8_t)message.payload[0], 0x80));
    message_deinit(&message);
    message_writer_deinit(&w);
}

Test(message, numbers_of_every_width_are_ids)
{
    static const struct {
        const char *bytes;
        size_t n_bytes;
        uint32_t id;
    } rows[] = {
        {"\x94\0\x05\xa1m\x91\x80", 7, 5},
        {"\x94\0\xcc\xff\xa1m\x91\x80", 8, 255},
        {"\x94\0\xcd\1\0\xa1m\x91\x80", 9, 256},
        {"\x94\xcc\0\xce\xff\xff\xff\xff\xa1m\x91\x80", 12, UINT32_MAX},
        {"\xdc\0\4\0\xcf\0\0\0\0\0\0\0\7\xd9\1m\xdc\0\1\xde\0\0", 22, 7},
        {"\xdd\0\0\0\4\0\xd1\0\7\xda\0\1m\xdd\0\0\0\1\xdf\0\0\0\0", 23, 7},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct message message;
        bool has_id;
        cr_assert(eq(int, frame_body_check(rows[i].bytes, rows[i].n_bytes), 0), "row %zu", i);
        int r = message_decode(rows[i].bytes, rows[i].n_bytes, &message, &has_id, NULL);
        cr_assert(eq(int, r, 0), "row %zu", i);
        cr_assert(eq(u32, message.id, rows[i].id));
        message_deinit(&message);
    }
    struct message message;
    bool has_id;
    cr_assert(eq(int, message_decode("\x94\0\xd0\xff\xa1m\x91\x80", 8, &message, &has_id, NULL),
                 GAD_BAD_REQUEST));
}

Test(message, a_writer_is_used_again_and_gives_large_memory_back)
{
    struct message_writer w;
    message_writer_init(&w);
    message_begin_notification(&w, "big");
    pack_json(&w.packer, "{'a': <500000>}");
    cr_assert(lt(sz, 500000, w.buffer.size));
    message_begin_notification(&w, "small");
    pack_json(&w.packer, "{}");
    cr_assert(eq(sz, w.buffer.size, 10));
    cr_assert(lt(sz, w.buffer.alloc, 100000));
    message_writer_deinit(&w);
    message_writer_deinit(&w);
}

Test(map, values_are_found_by_key_and_type)
{
    struct params *p = params_new("{'u': 5, 'i': -5, 'f': 2.5, 'b': true, 's': 'text', 5: 6, "
                                  "'u': 7, 'max': 18446744073709551615}");
    const msgpack_object *map = &p->message.params;
    uint64_t u = 1;
    int64_t i = 1;
    double f = 1;
    bool b = false;
    const char *s = NULL;
    size_t n = 0;
    cr_assert(eq(int, map_u64(map, "u", &u, NULL), 0));
    cr_assert(eq(u64, u, 5)); /* the first of two */
    cr_assert(eq(int, map_u64(map, "max", &u, NULL), 0));
    cr_assert(eq(u64, u, UINT64_MAX));
    cr_assert(eq(int, map_i64(map, "i", &i, NULL), 0));
    cr_assert(eq(i64, i, -5));
    cr_assert(eq(int, map_i64(map, "u", &i, NULL), 0));
    cr_assert(eq(i64, i, 5));
    cr_assert(eq(int, map_f64(map, "f", &f, NULL), 0));
    cr_assert(eq(dbl, f, 2.5));
    cr_assert(eq(int, map_f64(map, "i", &f, NULL), 0));
    cr_assert(eq(dbl, f, -5.0));
    cr_assert(eq(int, map_bool(map, "b", &b, NULL), 0));
    cr_assert(b);
    cr_assert(eq(int, map_require_str(map, "s", &s, &n, NULL), 0));
    cr_assert(eq(sz, n, 4));
    cr_assert(eq(int, memcmp(s, "text", 4), 0));
    params_free(p);
}

Test(map, absent_keys_leave_the_default)
{
    struct params *p = params_new("{}");
    const msgpack_object *map = &p->message.params;
    struct gad_error error;
    uint64_t u = 42;
    const char *s = NULL;
    size_t n = 9;
    char text[4] = "abc";
    cr_assert(eq(int, map_u64(map, "u", &u, &error), 0));
    cr_assert(eq(u64, u, 42));
    cr_assert(eq(int, map_str(map, "s", &s, &n, &error), 0));
    cr_assert(s == NULL);
    cr_assert(eq(int, map_copy_str(map, "s", text, sizeof(text), &error), 0));
    cr_assert(eq(str, text, "abc"));
    cr_assert(eq(int, map_require_u64(map, "u", &u, &error), GAD_BAD_REQUEST));
    cr_assert(eq(str, error.argument, "u"));
    cr_assert(eq(int, map_require_str(map, "s", &s, &n, &error), GAD_BAD_REQUEST));
    cr_assert(map_find(NULL, "u") == NULL);
    cr_assert(map_find(&p->message.error, "u") == NULL);
    params_free(p);
}

Test(map, other_types_are_refused_and_named)
{
    struct params *p = params_new("{'v': 'text', 'n': -1, 'f': 1.0, 'max': 18446744073709551615}");
    const msgpack_object *map = &p->message.params;
    struct gad_error error;
    uint64_t u;
    int64_t i;
    double f;
    bool b;
    const char *s;
    size_t n;
    cr_assert(eq(int, map_u64(map, "v", &u, &error), GAD_BAD_REQUEST));
    cr_assert(eq(str, error.argument, "v"));
    cr_assert(eq(str, error.found, "a text"));
    cr_assert(eq(int, map_u64(map, "n", &u, &error), GAD_BAD_REQUEST));
    cr_assert(eq(int, map_u64(map, "f", &u, &error), GAD_BAD_REQUEST));
    cr_assert(eq(int, map_i64(map, "v", &i, &error), GAD_BAD_REQUEST));
    cr_assert(eq(int, map_i64(map, "max", &i, &error), GAD_BAD_REQUEST));
    cr_assert(eq(str, error.found, "18446744073709551615"));
    cr_assert(eq(int, map_f64(map, "v", &f, &error), GAD_BAD_REQUEST));
    cr_assert(eq(int, map_bool(map, "v", &b, &error), GAD_BAD_REQUEST));
    cr_assert(eq(int, map_str(map, "n", &s, &n, &error), GAD_BAD_REQUEST));
    cr_assert(eq(int, map_str(map, "n", &s, &n, NULL), GAD_BAD_REQUEST));
    params_free(p);
}

Test(map, copied_texts_fit_and_are_printable)
{
    struct params *p = params_new("{'s': 'abcd', 'c': 'a\nb', 'x': '\xff', 'e': ''}");
    const msgpack_object *map = &p->message.params;
    struct gad_error error;
    char text[5] = "zzzz";
    cr_assert(eq(int, map_copy_str(map, "s", text, 5, &error), 0));
    cr_assert(eq(str, text, "abcd"));
    cr_assert(eq(int, map_copy_str(map, "s", text, 4, &error), GAD_BAD_REQUEST));
    cr_assert(eq(int, map_copy_str(map, "c", text, 5, &error), GAD_BAD_REQUEST));
    cr_assert(eq(int, map_copy_str(map, "x", text, 5, &error), GAD_BAD_REQUEST));
    cr_assert(eq(str, text, "abcd"));
    cr_assert(eq(int, map_copy_str(map, "e", text, 5, &error), 0));
    cr_assert(eq(str, text, ""));
    params_free(p);
}
