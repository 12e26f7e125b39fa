/* What the tests of proto/ share: msgpack written as text, and descriptors to send. */
#pragma once

#include "proto/wire/message.h"

/* Packs JSON-like text: 'text' in single quotes, integers, floats with a point, true, false, nil,
 * [..], {..}, and <n> for n bytes of binary zero. The text must be right: no error is reported. */
void pack_json(msgpack_packer *packer, const char *text);

/* A message's body whose params are `text`, decoded. Free with params_free(). */
struct params {
    struct message_writer writer;
    struct message message;
};
struct params *params_new(const char *text);
void params_free(struct params *params);

/* How many descriptors this process has open. */
unsigned count_open_fds(void);
