/* The CRC-32 that an archive has of its members. */
#pragma once

#include "client/formats/npz/npz_member.h"

/* CRC-32 of n_bytes of a file. 0 or -errno. */
int npz_crc_of(int fd, uint64_t offset_bytes, uint64_t n_bytes, uint32_t *ret_crc) GAD_MUST_CHECK;

/* For an array of ACCESS_FILE that is all of a stored member, open for reading: a job that has read
 * it ends well only if the member's CRC-32 is the archive's. Of what is selected of the array
 * afterwards nothing is compared. */
int npz_crc_check(struct gad_array *array, const struct npz_archive *archive,
                  const struct zip_member *member, uint64_t data_offset,
                  struct gad_error *error) GAD_MUST_CHECK;
