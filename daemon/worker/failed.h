/* What a worker that cannot start says before it leaves. */
#pragma once

#include "proto/error.h"

/* Sends worker.failed on the broker's socket, which stays the caller's, and waits until it is
 * written or the broker is gone. -errno. */
int worker_send_failed(int fd, const struct gad_error *error) GAD_MUST_CHECK;
