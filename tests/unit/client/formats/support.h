/* What the tests of the formats share: a folder of their own, files in it, and the elements of an
 * array read the way that its access says. */
#pragma once

#include "client/formats/formats.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <hdf5.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void folder_make(void);   /* a new folder becomes the working directory */
void folder_remove(void); /* and goes with all that is in it */

void file_put(const char *path, const void *bytes, size_t n_bytes);
/* Number of entries of the working directory. */
int folder_count(void);
int descriptor_count(void);

/* An npy file of version `major` with this header text and n_bytes of data 0, 1, 2, ... */
void npy_put(const char *path, int major, const char *text, size_t n_bytes);
/* An npy file of n uint16: first, first + 1, ... shape: as its header has it, "(2, 3)". */
void npy_put_counting(const char *path, bool is_big_endian, const char *shape, int n, int first);

/* Opens or stops the test. */
struct gad_array *open_ok(const char *spec);
struct gad_array *create_ok(const char *spec, enum dtype dtype, int ndim, const int64_t *shape);
void commit_ok(struct gad_array *array);
void expect_shape(const struct gad_array *array, const char *wanted); /* "(5, 3)" */
/* The word of the failure, or "ok"; the error is kept in last_error. */
const char *open_word(const char *spec);
const char *open_in_place_word(const char *spec);
const char *create_word(const char *spec, bool replace, enum dtype dtype, int ndim,
                        const int64_t *shape);
extern struct gad_error last_error;

size_t n_elements(const struct gad_array *array);
/* All elements in C order as they are stored, by descriptor, table or provider; to be freed. */
void *elements(const struct gad_array *array);
/* The same through the array's provider, in blocks of at most `step` along each axis. */
void *elements_by_blocks(const struct gad_array *array, int64_t step);
/* Writes all elements through the descriptor; C order. */
void write_elements(const struct gad_array *array, const void *bytes);

/* Becomes an ordinary user for the rest of the test, when root. */
void drop_root(void);

/* A tmpfs of 1 MiB, for this process alone; skips the test where that is not possible. */
void mount_small_tmpfs(const char *path);
void unmount(const char *path);

/* HDF5: a file with the dataset `name` of doubles 0, 1, 2, ... Each 0 chunk: contiguous. */
hid_t h5_create(const char *path, hsize_t user_block);
void h5_put(hid_t file, const char *name, hid_t file_type, int ndim, const hsize_t *dims,
            const hsize_t *chunk, hid_t dcpl);
