/* The files beside its own that a dataset's elements lie in: of virtual datasets, of external
 * storage, and the file of a dataset behind an external link. */
#pragma once

#include "client/formats/files/file_mark.h"

#include <hdf5.h>

struct hdf5_other {
    char *path;
    struct file_mark mark;
};

struct hdf5_others {
    size_t n;
    struct hdf5_other *list;
};

/* As they are now; path: of the file by which the dataset was found. Inside a scope. 0, ENOMEM. */
int hdf5_others_find(hid_t dataset, const char *path, struct hdf5_others *ret_others);
void hdf5_others_sum(const struct hdf5_others *others, struct file_sums *sums);
void hdf5_others_deinit(struct hdf5_others *others);
/* The path of one that is not what it was; NULL: there is none. */
const char *hdf5_others_changed(const struct hdf5_others *others);
