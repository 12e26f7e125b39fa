/* Zip archives: what is in one and where it lies. Nothing is believed that the file's size does not
 * bear out, and nothing is decoded here. All return 0, a positive gad_status, or a negative errno
 * where the file cannot be read. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZIP_LOCAL_BYTES   30 /* without name and extra fields */
#define ZIP_CENTRAL_BYTES 46
#define ZIP_END_BYTES     22

#define ZIP_STORED   0
#define ZIP_DEFLATED 8

#define ZIP_FLAG_ENCRYPTED  0x0001
#define ZIP_FLAG_DESCRIPTOR 0x0008 /* CRC and sizes stand behind the data */
#define ZIP_FLAG_UTF8       0x0800

#define ZIP_EXTRA_ZIP64 0x0001

/* Bytes of an archive. `read` brings exactly n_bytes, which lie inside size_bytes. 0 or -errno. */
struct zip_source {
    uint64_t size_bytes;
    int (*read)(void *state, void *buffer, size_t n_bytes, uint64_t offset_bytes);
    void *state;
};

struct zip_member {
    char *name; /* without '\0' inside; in the archive's own encoding */
    uint16_t flags, method;
    uint32_t crc;
    uint64_t packed_bytes, size_bytes; /* as it lies there, and as it was */
    uint64_t header_offset;            /* of its local header in the file */
    uint64_t most_end;                 /* where the next thing begins: what it may fill at most */
    size_t record_at, record_bytes;    /* in the directory's bytes */
};

struct zip_directory {
    uint8_t *bytes;
    size_t n_bytes;
    uint64_t offset_bytes; /* of the bytes in the file */
    uint64_t prefix_bytes; /* that stand before the archive; offsets in it do not count them */
    struct zip_member *members;
    size_t n_members; /* in the directory's order */
    uint8_t *comment; /* of the archive */
    size_t n_comment;
};

/* `name` is the error's argument. bad-format, no-memory. */
int zip_directory_read(const struct zip_source *source, const char *name,
                       struct zip_directory *ret_directory, struct gad_error *error) GAD_MUST_CHECK;
void zip_directory_deinit(struct zip_directory *directory); /* of a zeroed one too */

/* A local header: what the copy of a member needs of it. */
struct zip_local {
    uint64_t data_offset;
    size_t n_extra;
    uint8_t extra[65535];
};

/* Where the member's data begin, its local header compared with what the directory says. Refuses
 * what cannot be decoded: encrypted members, methods but stored and deflated, sizes that cannot
 * be. ret_local may be NULL. */
int zip_member_locate(const struct zip_source *source, const struct zip_member *member,
                      const char *name, uint64_t *ret_data_offset,
                      struct gad_error *error) GAD_MUST_CHECK;
/* The local header alone, whatever the method. */
int zip_member_local(const struct zip_source *source, const struct zip_member *member,
                     const char *name, struct zip_local *ret_local,
                     struct gad_error *error) GAD_MUST_CHECK;

/* The extra field `id` among n_bytes of them; NULL: not there. */
const uint8_t *zip_extra_find(const uint8_t *extra, size_t n_bytes, uint16_t id, size_t *ret_n);

static inline uint16_t zip_u16(const uint8_t *b)
{
    return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t zip_u32(const uint8_t *b)
{
    return (uint32_t)zip_u16(b) | (uint32_t)zip_u16(b + 2) << 16;
}

static inline uint64_t zip_u64(const uint8_t *b)
{
    return (uint64_t)zip_u32(b) | (uint64_t)zip_u32(b + 4) << 32;
}
