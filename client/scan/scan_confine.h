/* What a shared scan's process gives up before it looks at anything of a client's. */
#pragma once

#include "proto/error.h"

/* Of all threads, for good: nothing is left but reading and writing what is open, sending and
 * receiving, memory, time and its own threads' locks. no_path: "", with which statx() looks at a
 * descriptor. 0 or -errno. Without effect under sanitizers, which look into the process. */
int scan_confine(const char *no_path) GAD_MUST_CHECK;
