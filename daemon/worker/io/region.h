/* Regions: memory of clients (memfds) that a session attached once; arrays lie in them. Used by the
 * main thread only; tiles use the mapped addresses while their job holds a reference. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stdint.h>

struct region {
    uint64_t id;
    unsigned n_refs; /* the table's one and one a job and argument */
    int fd;
    bool is_writable;
    char *base;
    uint64_t size_bytes;
    int64_t n_blocks; /* of memory behind it (st_blocks) when it was attached */
    struct region *next;
    struct regions *table;
};

struct regions;

/* Who is told of mappings: behind mmap(), before munmap(). */
struct regions_watch {
    void (*mapped)(void *argument, struct region *region);
    void (*unmapped)(void *argument, struct region *region);
    void *argument;
};

int regions_new(struct regions **ret_regions) GAD_MUST_CHECK;
struct regions *regions_free(struct regions *t); /* NULL; no job holds a reference */
void regions_watch(struct regions *t, const struct regions_watch *watch); /* at most one */
/* A mapping of a client's memory by others: touching a page that was taken away raises SIGBUS, see
 * guard.h, instead of making a new one. */
void regions_watch_memory(const struct regions *t, void *memory, uint64_t n_bytes);
unsigned regions_n_mappings(const struct regions *t);

/* Takes the descriptor, also on failure. bad-region, -errno. */
int region_attach(struct regions *t, uint64_t id, uint64_t size_bytes, bool is_writable,
                  int fd_take, struct gad_error *error) GAD_MUST_CHECK;
void region_detach(struct regions *t, uint64_t id); /* unmapped when no job uses it any more */

struct region *region_ref(struct regions *t, uint64_t id); /* NULL: there is none */
struct region *region_unref(struct region *region);        /* NULL */

/* Whether the memory of [low, high) is still there, as far as the kernel's counts tell. */
bool region_is_intact(const struct region *region, uint64_t low, uint64_t high);
