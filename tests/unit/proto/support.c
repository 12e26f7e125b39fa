/* Shared by the tests of proto/: a packer from text, so that a test can show the message that it
 * is about, and counting descriptors. */
#include "tests/unit/proto/support.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static const char *pack_value(msgpack_packer *p, const char *at);

static const char *skip_space(const char *at)
{
    while (isspace((unsigned char)*at) || *at == ',' || *at == ':')
        at++;
    return at;
}

static unsigned count_values(const char *at, char end)
{
    struct message_writer ignored;
    unsigned n = 0;
    message_writer_init(&ignored);
    for (at = skip_space(at); *at != end; at = skip_space(at)) {
        at = pack_value(&ignored.packer, at);
        n++;
    }
    message_writer_deinit(&ignored);
    return n;
}

static const char *pack_values(msgpack_packer *p, const char *at, char end)
{
    for (at = skip_space(at); *at != end; at = skip_space(at))
        at = pack_value(p, at);
    return at + 1;
}

static const char *pack_number(msgpack_packer *p, const char *at)
{
    char *end;
    size_t n = strspn(at, "+-0123456789.eE");
    if (memchr(at, '.', n) != NULL)
        msgpack_pack_double(p, strtod(at, &end));
    else if (*at == '-')
        msgpack_pack_int64(p, strtoll(at, &end, 10));
    else
        msgpack_pack_uint64(p, strtoull(at, &end, 10));
    assert(end > at);
    return end;
}

static const char *pack_binary(msgpack_packer *p, const char *at)
{
    char *end;
    size_t n = strtoul(at, &end, 10);
    char *zeros = calloc(1, n + 1);
    msgpack_pack_bin(p, n);
    msgpack_pack_bin_body(p, zeros, n);
    free(zeros);
    return end + 1;
}

static const char *pack_word(msgpack_packer *p, const char *at)
{
    if (strncmp(at, "true", 4) == 0) {
        msgpack_pack_true(p);
        return at + 4;
    }
    if (strncmp(at, "false", 5) == 0) {
        msgpack_pack_false(p);
        return at + 5;
    }
    assert(strncmp(at, "nil", 3) == 0);
    msgpack_pack_nil(p);
    return at + 3;
}

static const char *pack_value(msgpack_packer *p, const char *at)
{
    size_t n_chars;
    switch (*at) {
    case '[': msgpack_pack_array(p, count_values(at + 1, ']')); return pack_values(p, at + 1, ']');
    case '{':
        msgpack_pack_map(p, count_values(at + 1, '}') / 2);
        return pack_values(p, at + 1, '}');
    case '<': return pack_binary(p, at + 1);
    case '\'':
        n_chars = strcspn(at + 1, "'");
        msgpack_pack_str(p, n_chars);
        msgpack_pack_str_body(p, at + 1, n_chars);
        return at + n_chars + 2;
    default: return isalpha((unsigned char)*at) ? pack_word(p, at) : pack_number(p, at);
    }
}

void pack_json(msgpack_packer *packer, const char *text)
{
    pack_value(packer, skip_space(text));
}

struct params *params_new(const char *text)
{
    struct params *params = calloc(1, sizeof(*params));
    struct message_writer *w = &params->writer;
    bool has_id;
    message_writer_init(w);
    message_begin_request(w, 1, "test");
    pack_json(&w->packer, text);
    int r = frame_body_check(w->buffer.data, w->buffer.size);
    assert(r == 0);
    r = message_decode(w->buffer.data, w->buffer.size, &params->message, &has_id, NULL);
    assert(r == 0);
    (void)r;
    return params;
}

void params_free(struct params *params)
{
    message_deinit(&params->message);
    message_writer_deinit(&params->writer);
    free(params);
}

unsigned count_open_fds(void)
{
    unsigned n = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL)
        n++;
    closedir(folder);
    return n;
}
