/* Names of the axes of datasets, for listings. Inside a scope. */
#pragma once

#include "client/formats/hdf5/listing/hdf5_list_notes.h"

/* What is known of the file's dimension scales. */
struct list_axes {
    hid_t file; /* of which it is */
    unsigned long file_number;
    struct object_texts names;   /* of objects, by where they lie */
    struct object_texts scales;  /* of those that were referred to; "" for one without a name */
    struct object_texts learned; /* groups whose links are in `names` */
};

bool list_axes_init(struct list_axes *axes, hid_t file);
void list_axes_deinit(struct list_axes *axes);

/* path: of the dataset, in its file. ndim names, each of which may be NULL; NULL: there is none. */
const char *const *list_axes_of(struct list_axes *axes, hid_t dataset, const char *path, int ndim,
                                const struct list_notes *notes, struct hdf5_heap *heap,
                                struct list_memory *memory);
