/* Runs of bytes into a file, past the page cache where that is the better way. */
#pragma once

#include "daemon/worker/io/writing.h"
#include "proto/error.h"

/* 0; no-space, read-only, io-error. writing NULL: through the cache. */
int writer_write(int fd, struct writing *writing, const char *name, const char *memory,
                 int64_t n_bytes, int64_t offset, struct gad_error *error) GAD_MUST_CHECK;
