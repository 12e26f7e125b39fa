/* A msgpack object as JSON text. */
#pragma once

#include <msgpack.h>

/* Heap text. -ENOMEM. Binaries become strings of hexadecimal digits. */
int json_from_msgpack(const msgpack_object *object, char **ret_text);
