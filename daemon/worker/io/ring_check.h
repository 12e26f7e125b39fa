/* Whether what a client has sent can be a ring. */
#pragma once

#include "proto/array.h"

/* bad-descriptor, -errno. */
int ring_check(const struct array *array, const char *name, int ring_fd, int request_fd,
               int done_fd, struct gad_error *error) GAD_MUST_CHECK;
