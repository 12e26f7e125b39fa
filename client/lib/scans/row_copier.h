/* Rows of files that are in the page cache, copied by a process that may map them. */
#pragma once

#include "client/rows/row_source.h"

struct row_copier;

/* What rows are copied to: shared memory of this process. */
struct copied_memory {
    int fd; /* needed until the copier goes */
    char *map;
    uint64_t size_bytes;
};

/* Starts nothing yet: the process begins with the first rows. NULL: no memory. */
struct row_copier *row_copier_new(const struct copied_memory *target);
/* Nobody reads. NULL allowed; returns NULL. */
struct row_copier *row_copier_free(struct row_copier *copier);

/* Whether a source's rows are such that it can be added. */
bool row_copier_can_copy(const struct row_source *source);
/* Whether it is so of some rows all over it. */
bool row_copier_is_in_memory(const struct row_source *source);
/* From now on gathers of many rows that are in memory, into the target, come from the process.
 * Else, and whatever goes wrong later, the source reads as before. Before the first gather. False:
 * there are too many of them. */
bool row_copier_add(struct row_copier *copier, struct row_source *source) GAD_MUST_CHECK;

/* Whether the rows of the last gather of many were copied. By any thread. */
bool row_copier_is_in_use(const struct row_copier *copier);
/* By who gathers, after rows were not copied: whether they may be again, as they are in memory by
 * now and the process is there. NULL allowed. */
bool row_copier_can_go_on(struct row_copier *copier);
