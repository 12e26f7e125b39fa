/* Where a new array of a store goes: a folder under a hidden name, until it is whole. */
#pragma once

#include "client/hidden.h"
#include "proto/error.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* The way from the folder of a store to an array:
 *
 *     folder / x.zarr / group / array      parts: x.zarr, group, array
 *              \___ there ___/ \_ new _/   n_there: 2
 *
 * The first part that is new is made under the hidden name in the last one that is there, with the
 * further ones in it. */
struct zarr_place {
    int parent_fd; /* the last folder that is there, O_PATH */
    int array_fd;  /* the array's own */
    char *text;    /* of the parts, slashes replaced by ends */
    char **parts;
    unsigned n_parts, n_there;
    char *folder; /* of the store */
    char temporary[NAME_MAX + 1];
    bool is_made;  /* the hidden folder is there */
    bool replaces; /* what is there may be replaced, if it is an array */
    int version;   /* of the groups that are there, else 3 */
};

/* exists, not-found, permission-denied, read-only, bad-argument: the way leads through an array. */
int zarr_place_init(struct zarr_place *place, const char *path, const char *dataset, bool replace,
                    const char *name, struct gad_error *error) GAD_MUST_CHECK;
/* What was made and not committed is removed. */
void zarr_place_deinit(struct zarr_place *place);

/* Calls for each new folder, from the outside inwards; the last one is the array's. Anything but 0
 * ends it and is returned. */
typedef int zarr_place_function(void *userdata, int folder_fd, unsigned part);
int zarr_place_each_new(const struct zarr_place *place, zarr_place_function *function,
                        void *userdata) GAD_MUST_CHECK;

/* Gives it its name, in one step. ret_n_new: how many parts were new in the end. */
int zarr_place_commit(struct zarr_place *place, const char *name, unsigned *ret_n_new,
                      struct gad_error *error) GAD_MUST_CHECK;

/* Whether one is the other, or leads through it. */
bool zarr_place_meets(const struct zarr_place *place, const struct zarr_place *other);

/* Opens the folder of the part before `part` (0: the store's). Negative errno. */
int zarr_place_open(const struct zarr_place *place, unsigned part);
