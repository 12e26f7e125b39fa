/* Attributes of an object of an HDF5 file, for listings. Inside a scope. */
#pragma once

#include "client/formats/hdf5/listing/hdf5_varying.h"
#include "client/formats/hdf5/listing/list_memory.h"
#include "client/gpuarrayd.h"

struct list_notes {
    size_t n;
    struct gad_attribute *list;
    bool is_scale;     /* names an axis of other datasets, and its own */
    bool is_dimension; /* such a scale that netCDF-4 made for a dimension without a variable */
    bool has_axes, has_labels;
};

/* plist: with which the object was made, or none. All that can be read, in the order of
 * their making where the file has it, else of their names,
 * without those in which HDF5 and netCDF-4 tie axes together. */
void hdf5_list_notes(hid_t object, hid_t plist, struct hdf5_heap *heap, struct list_memory *memory,
                     struct list_notes *ret);

/* The attribute's texts; an empty one for each that is not there. 0: it has none of these, or too
 * many. */
size_t hdf5_list_texts(hid_t object, const char *attribute, struct hdf5_heap *heap,
                       struct list_memory *memory, const char *const **ret_texts);
