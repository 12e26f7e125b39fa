/* Clients' regions registered with the driver, so that the device copies from and to them without a
 * stop in pinned memory: a cache on top of staging. Nothing depends on it: where a window is not
 * registered, or may not be, its bytes are staged. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stdint.h>

#define REGISTERED_WINDOW_BYTES (UINT64_C(64) << 20)
#define REGISTERED_IDLE_NS      UINT64_C(10000000000)

struct registered;
struct registered_window;

struct registered_config {
    uint64_t budget_bytes; /* registered at a time, at most */
    uint64_t window_bytes; /* whole pages */
    uint64_t idle_ns;      /* a window that was not used for so long is given up */
};

/* The budget where none was set: a quarter of the host's memory, at most 8 GiB. */
uint64_t registered_default_bytes(void);

/* Starts the helper thread. -errno. */
int registered_new(const struct registered_config *config,
                   struct registered **ret_registered) GAD_MUST_CHECK;
struct registered *registered_free(struct registered *r); /* NULL. Nothing is held */

/* A mapping of a client's memory, whole pages, is there; is about to go: then nothing of it is
 * held, and nothing of it is registered when this returns. One thread. -ENOMEM: it is staged. */
int registered_add(struct registered *r, void *base, uint64_t size_bytes,
                   bool is_writable) GAD_MUST_CHECK;
void registered_remove(struct registered *r, const void *base);

/* Any thread. Tells that a job uses [low, low + n_bytes). Not NULL: they lie in one window that is
 * registered, and it stays so until registered_release(). r may be NULL: nothing is registered.
 * Windows are registered from the second job on that uses them. */
struct registered_window *registered_hold(struct registered *r, const void *low, uint64_t n_bytes,
                                          uint64_t job);
void registered_release(struct registered *r, struct registered_window *w);
