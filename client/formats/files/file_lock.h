/* Who holds the lock on a file, as far as the system tells. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* "python3 (process 1234)": a process but for this one that holds a lock of flock() on the file of
 * `st`; is_exclusive: one that keeps readers out. False, and "": nobody that is known. */
bool file_lock_holder(const struct stat *st, bool is_exclusive, char *buffer, size_t n_bytes);
