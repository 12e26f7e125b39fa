/* The SIGBUS guard: memory that a client can take away fails one job, not the worker. */
#pragma once

#include "proto/error.h"

#include <stddef.h>

struct guard_range { /* one mapping of a client's memory or file */
    const char *base;
    size_t size_bytes;
};

/* Installs the handler, once a process. 0 or -errno. */
int guard_install(void) GAD_MUST_CHECK;

/* call(argument), and its value; -EFAULT when it met a SIGBUS inside one of the ranges: then
 * *ret_address says where, and whatever the call was doing has stopped half-way. It must not take
 * locks or allocate. A SIGBUS anywhere else ends the process, as it should. */
int guard_call(const struct guard_range *ranges, unsigned n_ranges, int (*call)(void *),
               void *argument, const void **ret_address) GAD_MUST_CHECK;
