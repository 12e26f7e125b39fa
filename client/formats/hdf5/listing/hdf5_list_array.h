/* A dataset of an HDF5 file, for listings. Inside a scope. */
#pragma once

#include "client/formats/hdf5/listing/list_memory.h"
#include "client/gpuarrayd.h"

/* Whether HDF5 can undo a filter; asking it may mean that it looks for plugins each time. */
struct list_filters {
    unsigned n;
    struct {
        H5Z_filter_t filter;
        bool is_served;
    } known[32];
};

/* Fills type, shape, chunks and filters, and whether it is served; file: the path of its file. */
void hdf5_list_array(hid_t dataset, hid_t plist, const char *file, struct list_filters *filters,
                     struct list_memory *memory, struct gad_listed *entry);
