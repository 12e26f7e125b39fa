/* The CRC-32 of members that are written in place.
 *
 * It stands in the member's header and in the directory, and is of all its bytes, so whoever has
 * changed some reads all of them again at the end of the job. Until then, and when the job fails,
 * readers that compare it refuse the member, as they should: it may be half written.
 *
 * Called by npz.c (begin), and by the core through the array after each job.
 */
#include "client/formats/npz/npz_in_place.h"
#include "client/formats/files/file_source.h"
#include "client/formats/npz/npz_crc.h"
#include "proto/util.h"

#include <stdlib.h>

#define CRC_IN_LOCAL   14
#define CRC_IN_CENTRAL 16

struct in_place {
    uint64_t data_offset, n_bytes;
    uint64_t crc_at[2]; /* in the file */
};

static int written(struct gad_array *array, struct gad_error *error)
{
    const struct in_place *in_place = array->format_state;
    uint32_t crc;
    int r = npz_crc_of(array->fd, in_place->data_offset, in_place->n_bytes, &crc);
    for (size_t i = 0; i < ARRAY_LENGTH(in_place->crc_at) && r == 0; i++) {
        const uint8_t b[4] = {(uint8_t)crc, (uint8_t)(crc >> 8), (uint8_t)(crc >> 16),
                              (uint8_t)(crc >> 24)};
        r = file_write(array->fd, b, sizeof(b), in_place->crc_at[i]);
    }
    return r < 0 ? file_path_error(error, -r, array->info.path, array->info.path) : 0;
}

static void free_state(struct gad_array *array)
{
    free(steal_ptr(array->format_state));
}

int npz_in_place_begin(struct gad_array *array, const struct npz_archive *archive,
                       const struct zip_member *member, uint64_t data_offset,
                       struct gad_error *error)
{
    if (member->flags & ZIP_FLAG_DESCRIPTOR)
        return error_set(error, GAD_READ_ONLY, archive->name,
                         "the member '%.120s' has its CRC behind its data: it cannot be written in "
                         "place",
                         member->name);
    struct in_place *in_place = calloc(1, sizeof(*in_place));
    if (!in_place)
        return error_from_errno(error, ENOMEM, archive->name, "array");
    in_place->data_offset = data_offset;
    in_place->n_bytes = member->size_bytes;
    in_place->crc_at[0] = member->header_offset + CRC_IN_LOCAL;
    in_place->crc_at[1] = archive->directory.offset_bytes + member->record_at + CRC_IN_CENTRAL;
    array->format_state = in_place;
    array->written = written;
    array->maker_free = free_state;
    return 0;
}
