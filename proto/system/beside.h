/* Finding our own programs wherever the whole of them was put. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool beside_is_program(const char *path);

/* The program of that name. It is looked for around the file that this code is in, a program or the
 * library, as an installation or a build folder has it, and then at `installed`, a whole path.
 * False: it is nowhere, and ret_path, of n_bytes, says `installed`. */
bool beside_find(const char *name, const char *installed, char *ret_path, size_t n_bytes);
