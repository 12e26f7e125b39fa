/* The files that are one array, and those of them that are open. */
#pragma once

#include "client/array.h"

#include <pthread.h>
#include <sys/stat.h>

struct spec;

/* What tells whether a file is what it was. */
struct stamp {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec written;
};

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
    struct stamp stamp;
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

/* Array, stamp and errors are those of `member`; the selection is its own. */
int member_open(const struct member *member, struct gad_client *client,
                struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;
/* Of an open file. */
int stamp_take(int fd, struct stamp *ret_stamp) GAD_MUST_CHECK; /* a negative errno */
void stamp_of(const struct stat *st, struct stamp *ret_stamp);
bool stamp_is_same(const struct stamp *a, const struct stamp *b);
bool stamp_is_same_file(const struct stamp *a, const struct stamp *b);
