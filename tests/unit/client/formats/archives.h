/* Archives that the tests of npz make: members of any kind, and wrong ones. */
#pragma once

#include "support.h"

#include "client/formats/npz/zip_write.h"

struct made_member {
    const char *name;
    const void *data;
    size_t n_bytes;
    bool is_deflated;
    uint16_t flags; /* with ZIP_FLAG_DESCRIPTOR: sizes and CRC stand behind the data only */
};

/* An npy file with n_bytes 0, 1, 2, ... behind the header; to be freed. */
void *npy_bytes(const char *descr, bool fortran_order, const char *shape, size_t n_bytes,
                size_t *ret_n_bytes);
/* The bytes of an archive; to be freed. */
uint8_t *archive_bytes(const struct made_member *members, size_t n_members, size_t *ret_n_bytes);
void archive_put(const char *path, const struct made_member *members, size_t n_members);

/* Where the i-th record with this signature stands. */
size_t archive_find(const uint8_t *bytes, size_t n_bytes, uint32_t sign, int i);
#define SIGN_LOCAL   0x04034b50u
#define SIGN_CENTRAL 0x02014b50u
#define SIGN_END     0x06054b50u
