/* The files that are one array, and those of them that are open. */
#pragma once

#include "client/array.h"
#include "client/formats/files/file_mark.h"

#include <pthread.h>

struct spec;

/* One source of several. */
struct member {
    const struct spec *spec; /* with the path of any member */
    char *path;              /* once it was looked at, from the root of the file system */
    char *name;              /* its spec: for errors, and for what it selects */
    size_t selection_at;     /* of the bracket in `name`; 0: none */
    int64_t first, length;   /* elements along the joined axis; of a new axis 1 */
    bool is_swapped;
    bool is_plain; /* in one piece of a file, from offset_bytes on, in C order or: */
    bool is_fortran;
    uint64_t offset_bytes;
    bool is_folder;          /* a store of many files, and so: */
    struct file_sums inside; /* of who watches */
    struct file_mark mark;
    struct opened *opened; /* under the lock of the members */
};

/* A member that is open. */
struct opened {
    struct member *member;
    struct gad_array *array; /* NULL: of a plain one, which is read through fd */
    int fd;
    pthread_mutex_t turn; /* of providers that one thread may call at a time */
    unsigned n_users;
    bool is_out;                  /* in no list any more */
    struct opened *newer, *older; /* of those that are open */
};

/* Array and errors are those of `member`; the selection is its own. */
int member_open(const struct member *member, struct gad_client *client,
                struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;
