/* What the service manager is told and what it hands over, by libsystemd. Without that library, or
 * without a service manager, there is nobody to tell and nothing is handed over. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stddef.h>

struct loop;
struct notifier;

/* The listening socket that was handed over: *ret_fd is -1 if none was. Its path goes to `path`
 * where it has one. -EINVAL, logged: not exactly one listening stream socket of the Unix domain. */
int notify_take_socket(int *ret_fd, char *path, size_t n_bytes) GAD_MUST_CHECK;

int notifier_new(struct loop *loop, struct notifier **ret_notifier) GAD_MUST_CHECK;
struct notifier *notifier_free(struct notifier *notifier); /* NULL */

/* Sends in order, never waits. A watchdog that is wanted is fed from here on by itself, while the
 * loop turns. */
void notifier_send(struct notifier *notifier, const char *format, ...) GAD_PRINTF(2, 3);
void notifier_status(struct notifier *notifier, const char *format, ...) GAD_PRINTF(2, 3);
