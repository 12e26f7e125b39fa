/* A msgpack object as JSON. */
#pragma once

#include <msgpack.h>

struct json_object;

/* To be put. -ENOMEM; -EPROTO: a map has a key that is no text. Binaries become strings of
 * hexadecimal digits. *ret NULL: null. */
int json_object_from_msgpack(const msgpack_object *object, struct json_object **ret);
/* The same as heap text. */
int json_from_msgpack(const msgpack_object *object, char **ret_text);
/* Heap text of it. -ENOMEM. */
int json_text(struct json_object *object, char **ret_text);
