/* Attributes of varying length, without HDF5's own reading of the heap that has them. Inside a
 * scope. */
#pragma once

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the elements of an attribute are: in which file, and how that has addresses. Zeroed: none
 * is known. */
struct hdf5_heap {
    unsigned long file_number;
    bool is_known;
    int fd; /* of HDF5 */
    uint64_t base_bytes, file_bytes;
    unsigned address_bytes, size_bytes;
    uint64_t address; /* of the collection at hand */
    size_t n_bytes;
    unsigned char *collection; /* NULL: none */
};
void hdf5_heap_deinit(struct hdf5_heap *heap);

/* One element: n_items of the base type at `items`; NULL: none. */
struct hdf5_varying {
    size_t n_items;
    const unsigned char *items;
};

/* Reads n elements of an attribute that is a sequence or string of varying length, of items of so
 * many bytes, one after the other: `take` gets each, valid until it returns. False: the attribute
 * or the heap is damaged, or memory is short. */
bool hdf5_varying_read(struct hdf5_heap *heap, hid_t attribute, size_t n, size_t item_bytes,
                       void (*take)(void *userdata, size_t i, struct hdf5_varying element),
                       void *userdata);
