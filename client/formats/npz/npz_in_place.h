/* Stored members that are written in place. */
#pragma once

#include "client/formats/npz/npz_member.h"

/* For an array of ACCESS_FILE of the member, open for writing: after each job the archive's CRC-32
 * is made that of what the member holds then. read-only: the archive has it where it cannot be
 * changed. */
int npz_in_place_begin(struct gad_array *array, const struct npz_archive *archive,
                       const struct zip_member *member, uint64_t data_offset,
                       struct gad_error *error) GAD_MUST_CHECK;
