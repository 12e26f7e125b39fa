/* Links of an HDF5 file, for listings. Inside a scope. */
#pragma once

#include "client/formats/hdf5/listing/list_memory.h"

/* Properties with which links are followed, to be closed: those to other files only where they lead
 * to no pipe or device, which would wait for somebody. Negative: HDF5 fails. */
hid_t hdf5_list_access(void);

/* What a link is, with where it leads: "a soft link to '/x'". NULL: no memory. */
const char *hdf5_list_link(hid_t group, const char *name, H5L_type_t type,
                           struct list_memory *memory);
