/* Chunks as they are stored: where they lie, and their bytes, read outside of HDF5's lock. */
#pragma once

#include "client/formats/chunked/chunk_source.h"

#include <hdf5.h>
#include <stdatomic.h>
#include <sys/stat.h>

/* How files are opened whose chunks are to be found. Inside a scope. */
herr_t hdf5_stored_use(hid_t access_plist);

/* A file that HDF5 has open, once more: HDF5 may close its own at any time. */
struct hdf5_beside {
    int fd;               /* -1: never opened; the owner closes it at the end */
    bool is_it;           /* it is the file that HDF5 has open */
    atomic_uint n_closed; /* by HDF5: others may have written to it meanwhile */
};
/* HDF5 has opened it, as `fd`, the one of `st`; has closed it. Inside a scope. */
void hdf5_beside_open(struct hdf5_beside *beside, int fd, const struct stat *st);
void hdf5_beside_close(struct hdf5_beside *beside);

struct hdf5_where {
    haddr_t address; /* HADDR_UNDEF: nowhere, or the bytes are there already */
    unsigned n_closed;
};

/* The stored bytes of the chunk at `offsets`; or, where `beside` (NULL: it may not) is its file and
 * that was opened as above, where they are, and room for them in ret_bytes. Inside a scope. 0, or a
 * positive errno with ret_bytes->reason. */
int hdf5_stored_fetch(hid_t dataset, const hsize_t *offsets, const struct hdf5_beside *beside,
                      struct chunk_bytes *ret_bytes, struct hdf5_where *ret_where) GAD_MUST_CHECK;
/* What is not there yet; needs no scope. False: not all of it is in the file, or somebody may have
 * written to it since. */
bool hdf5_beside_read(const struct hdf5_beside *beside, const struct hdf5_where *where,
                      struct chunk_bytes *bytes);
