/* The CRC-32 of members whose elements are read where they lie.
 *
 * The daemon reads what it needs of a stored member in many threads, and has no use for the
 * archive's checksum, which is of all bytes in their order. So once a job has read such a member
 * the client goes over it, while it is still in the page cache, before anything is made of the
 * results; once for each time that an archive is opened. A part of a member has no checksum.
 *
 * Called by npz.c, and by the core through the array after each job.
 */
#include "client/formats/npz/npz_crc.h"
#include "client/formats/files/file_array.h"
#include "client/formats/files/file_source.h"
#include "proto/util.h"

#include <inttypes.h>
#include <isa-l.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES (256u << 10)

struct stored {
    uint64_t data_offset, n_bytes;
    uint64_t n_element_bytes; /* an array of fewer is a part */
    uint32_t crc;
    bool is_checked;
    char member[];
};

int npz_crc_of(int fd, uint64_t offset_bytes, uint64_t n_bytes, uint32_t *ret_crc)
{
    _cleanup_free_ uint8_t *buffer = malloc(BUFFER_BYTES);
    uint32_t crc = 0;
    int r = buffer ? 0 : -ENOMEM;
    for (uint64_t done = 0; done < n_bytes && r == 0;) {
        size_t n = (size_t)min_u64(BUFFER_BYTES, n_bytes - done), n_read = 0;
        r = file_read(fd, buffer, n, offset_bytes + done, &n_read);
        if (r == 0 && n_read < n)
            r = -EIO;
        if (r == 0)
            crc = crc32_gzip_refl(crc, buffer, n);
        done += n;
    }
    if (r == 0)
        *ret_crc = crc;
    return r;
}

static int was_read(struct gad_array *array, struct gad_error *error)
{
    struct stored *stored = array->format_state;
    uint32_t crc;
    if (stored->is_checked || file_array_n_bytes(array) < stored->n_element_bytes)
        return 0;
    int r = npz_crc_of(array->fd, stored->data_offset, stored->n_bytes, &crc);
    if (r < 0)
        return file_path_error(error, -r, array->info.path, array->info.path);
    stored->is_checked = crc == stored->crc;
    if (stored->is_checked)
        return 0;
    error_set(error, GAD_BAD_FORMAT, array->info.path,
              "the member '%.160s' of %.160s is damaged: its CRC-32 is not the archive's",
              stored->member, array->info.path);
    error_expected(error, "%08" PRIx32, stored->crc);
    error_found(error, "%08" PRIx32, crc);
    return GAD_BAD_FORMAT;
}

static void free_state(struct gad_array *array)
{
    free(steal_ptr(array->format_state));
}

int npz_crc_check(struct gad_array *array, const struct npz_archive *archive,
                  const struct zip_member *member, uint64_t data_offset, struct gad_error *error)
{
    size_t n_name = strlen(member->name) + 1;
    struct stored *stored = calloc(1, sizeof(*stored) + n_name);
    if (!stored)
        return error_from_errno(error, ENOMEM, archive->name, "array");
    stored->data_offset = data_offset;
    stored->n_bytes = member->size_bytes;
    stored->n_element_bytes = file_array_n_bytes(array);
    stored->crc = member->crc;
    memcpy(stored->member, member->name, n_name);
    array->format_state = stored;
    array->was_read = was_read;
    array->maker_free = free_state;
    return 0;
}
