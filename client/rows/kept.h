/* Rows of a source brought where each is read by itself. */
#pragma once

#include "client/rows/gather.h"

/* All rows, into memory (folder NULL) or a file without a name in a folder. *ret_kept is a source
 * of its own, whose elements are stored as the source's. What reading says, no-space (before
 * anything is read), no-memory, cancelled. */
int rows_keep(struct row_source *source, const char *folder, const atomic_bool *is_cancelled,
              const char *name, struct row_source *ret_kept,
              struct gad_error *error) GAD_MUST_CHECK;

/* A new file without a name. Its status, about `argument`. */
int rows_scratch_open(const char *folder, const char *argument, int *ret_fd,
                      struct gad_error *error) GAD_MUST_CHECK;
/* Bytes that are free there; UINT64_MAX: it does not say. */
uint64_t rows_scratch_free(int fd);
