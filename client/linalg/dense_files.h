/* Small arrays in files: gad_dense_save() and gad_dense_load() for the rest of the room. */
#pragma once

#include "client/gpuarrayd-linalg.h"

/* Members of other names that are there already stay. */
int dense_save(const char *path, unsigned n, const struct gad_dense *arrays,
               struct gad_error *error) __attribute__((warn_unused_result));
/* A new archive, in the place of what is there. */
int dense_replace(const char *path, unsigned n, const struct gad_dense *arrays,
                  struct gad_error *error) __attribute__((warn_unused_result));
int dense_load(const char *spec, struct gad_dense *ret_dense, struct gad_error *error)
    __attribute__((warn_unused_result));

/* Zeros, with a name; the caller's, ended by gad_dense_deinit() whatever the outcome. */
int dense_init(struct gad_dense *dense, const char *name, int ndim, const int64_t *shape,
               struct gad_error *error) __attribute__((warn_unused_result));
