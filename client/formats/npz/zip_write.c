/* Writing zip records.
 *
 * Numbers that do not fit their 32 or 16 bits stand in a Zip64 field, and only those: archives
 * below 4 GiB are read by everything. Padding is a field too, of the kind that Android's archives
 * have for the same purpose, so that there are no gaps between members.
 *
 * Called by npz_target.c.
 */
#include "client/formats/npz/zip_write.h"
#include "proto/util.h"

#include <string.h>

#define SIGN_LOCAL   0x04034b50u
#define SIGN_CENTRAL 0x02014b50u
#define SIGN_END     0x06054b50u
#define SIGN_END64   0x06064b50u
#define SIGN_LOCATOR 0x07064b50u

#define EXTRA_ALIGNMENT 0xd935
#define MAX_EXTRA       65535

#define VERSION_PLAIN 20
#define VERSION_ZIP64 45
#define MADE_BY_UNIX  (3 << 8 | VERSION_ZIP64)
#define RIGHTS        (UINT32_C(0600) << 16)
#define FIRST_DATE    (1 << 5 | 1) /* 1980-01-01 */

void zip_bytes_deinit(struct zip_bytes *bytes)
{
    free_ptr(&bytes->bytes);
    *bytes = (struct zip_bytes){.bytes = NULL};
}

static void append(struct zip_bytes *to, const void *bytes, size_t n_bytes)
{
    if (to->room - to->n_bytes < n_bytes && !to->is_lost) {
        size_t room = 2 * to->room + n_bytes + 256;
        uint8_t *more = realloc(to->bytes, room);
        to->is_lost = !more;
        to->bytes = more ? more : to->bytes;
        to->room = more ? room : to->room;
    }
    if (to->is_lost || n_bytes == 0)
        return;
    if (bytes)
        memcpy(to->bytes + to->n_bytes, bytes, n_bytes);
    else
        memset(to->bytes + to->n_bytes, 0, n_bytes);
    to->n_bytes += n_bytes;
}

static void append_number(struct zip_bytes *to, uint64_t value, unsigned n_bytes)
{
    uint8_t b[8];
    for (unsigned i = 0; i < n_bytes; i++)
        b[i] = (uint8_t)(value >> 8 * i);
    append(to, b, n_bytes);
}

static void append_u16(struct zip_bytes *to, uint64_t value)
{
    append_number(to, value, 2);
}

static void append_u32(struct zip_bytes *to, uint64_t value)
{
    append_number(to, value, 4);
}

static bool is_long(uint64_t value)
{
    return value >= UINT32_MAX;
}

static uint64_t short_of(uint64_t value)
{
    return is_long(value) ? UINT32_MAX : value;
}

static bool is_ascii(const char *text)
{
    while (*text && (unsigned char)*text < 0x80)
        text++;
    return *text == '\0';
}

struct zip_record zip_record_stored(const char *name, uint32_t crc, uint64_t size_bytes,
                                    uint64_t header_offset)
{
    return (struct zip_record){
        .name = name,
        .version = VERSION_PLAIN,
        .flags = is_ascii(name) ? 0 : ZIP_FLAG_UTF8,
        .method = ZIP_STORED,
        .date = FIRST_DATE,
        .crc = crc,
        .packed_bytes = size_bytes,
        .size_bytes = size_bytes,
        .header_offset = header_offset,
    };
}

/* What both kinds of header have from `version needed` to the length of the name. */
static void append_common(struct zip_bytes *to, const struct zip_record *record, bool is_zip64)
{
    append_u16(to, is_zip64 ? max_u64(record->version, VERSION_ZIP64) : record->version);
    append_u16(to, record->flags);
    append_u16(to, record->method);
    append_u16(to, record->time);
    append_u16(to, record->date);
    append_u32(to, record->crc);
}

/* A local header has both sizes in its Zip64 field or none. */
static bool has_long_size(const struct zip_record *record)
{
    return is_long(record->size_bytes) || is_long(record->packed_bytes);
}

static size_t padding(const struct zip_record *record, size_t n_before)
{
    uint64_t at = record->header_offset + n_before;
    size_t n = (size_t)(round_up_u64(at, ZIP_ALIGNMENT) - at);
    return n == 0 || n >= 6 ? n
                            : n + ZIP_ALIGNMENT; /* a field has at least its head and a number */
}

void zip_append_local(struct zip_bytes *to, const struct zip_record *record, bool is_aligned)
{
    size_t n_name = strlen(record->name), n_zip64 = has_long_size(record) ? 20 : 0;
    size_t n_extra = n_zip64 + record->n_extra;
    size_t n_pad = is_aligned ? padding(record, ZIP_LOCAL_BYTES + n_name + n_extra) : 0;
    if (n_extra + n_pad > MAX_EXTRA)
        n_pad = 0;
    append_u32(to, SIGN_LOCAL);
    append_common(to, record, n_zip64 > 0);
    append_u32(to, n_zip64 ? UINT32_MAX : record->packed_bytes);
    append_u32(to, n_zip64 ? UINT32_MAX : record->size_bytes);
    append_u16(to, n_name);
    append_u16(to, n_extra + n_pad);
    append(to, record->name, n_name);
    if (n_zip64) {
        append_u16(to, ZIP_EXTRA_ZIP64);
        append_u16(to, 16);
        append_number(to, record->size_bytes, 8);
        append_number(to, record->packed_bytes, 8);
    }
    append(to, record->extra, record->n_extra);
    if (n_pad) {
        append_u16(to, EXTRA_ALIGNMENT);
        append_u16(to, n_pad - 4);
        append_u16(to, ZIP_ALIGNMENT);
        append(to, NULL, n_pad - 6);
    }
}

void zip_append_central(struct zip_bytes *to, const struct zip_record *record, const uint8_t *old)
{
    size_t n_name = strlen(record->name), n_comment = old ? zip_u16(old + 32) : 0;
    const uint64_t numbers[] = {record->size_bytes, record->packed_bytes, record->header_offset};
    size_t n_zip64 = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++)
        n_zip64 += is_long(numbers[i]) ? 8 : 0;
    n_zip64 += n_zip64 ? 4 : 0;
    append_u32(to, SIGN_CENTRAL);
    append_u16(to, old ? zip_u16(old + 4) : MADE_BY_UNIX);
    append_common(to, record, n_zip64 > 0);
    append_u32(to, short_of(record->packed_bytes));
    append_u32(to, short_of(record->size_bytes));
    append_u16(to, n_name);
    append_u16(to, n_zip64 + record->n_extra);
    append_u16(to, n_comment);
    append_u16(to, 0);
    append_u16(to, old ? zip_u16(old + 36) : 0);
    append_u32(to, old ? zip_u32(old + 38) : RIGHTS);
    append_u32(to, short_of(record->header_offset));
    append(to, record->name, n_name);
    if (n_zip64) {
        append_u16(to, ZIP_EXTRA_ZIP64);
        append_u16(to, n_zip64 - 4);
        for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++)
            if (is_long(numbers[i]))
                append_number(to, numbers[i], 8);
    }
    append(to, record->extra, record->n_extra);
    if (n_comment)
        append(to, old + ZIP_CENTRAL_BYTES + zip_u16(old + 28) + zip_u16(old + 30), n_comment);
}

void zip_append_end(struct zip_bytes *to, uint64_t n_members, uint64_t n_bytes,
                    uint64_t offset_bytes, const uint8_t *comment, size_t n_comment)
{
    uint64_t end = offset_bytes + n_bytes;
    if (n_members >= UINT16_MAX || is_long(n_bytes) || is_long(offset_bytes)) {
        append_u32(to, SIGN_END64);
        append_number(to, 44, 8); /* of what follows */
        append_u16(to, MADE_BY_UNIX);
        append_u16(to, VERSION_ZIP64);
        append_u32(to, 0);
        append_u32(to, 0);
        append_number(to, n_members, 8);
        append_number(to, n_members, 8);
        append_number(to, n_bytes, 8);
        append_number(to, offset_bytes, 8);
        append_u32(to, SIGN_LOCATOR);
        append_u32(to, 0);
        append_number(to, end, 8);
        append_u32(to, 1);
    }
    uint64_t n_short = min_u64(n_members, UINT16_MAX);
    append_u32(to, SIGN_END);
    append_u32(to, 0);
    append_u16(to, n_short);
    append_u16(to, n_short);
    append_u32(to, short_of(n_bytes));
    append_u32(to, short_of(offset_bytes));
    append_u16(to, n_comment);
    append(to, comment, n_comment);
}

bool zip_extra_is_aligned(const uint8_t *extra, size_t n_bytes)
{
    size_t n;
    return zip_extra_find(extra, n_bytes, EXTRA_ALIGNMENT, &n);
}

size_t zip_extra_keep(const uint8_t *extra, size_t n_bytes, uint8_t *ret_extra)
{
    size_t n_kept = 0;
    for (size_t at = 0; n_bytes - at >= 4;) {
        size_t n = 4 + (size_t)zip_u16(extra + at + 2);
        unsigned id = zip_u16(extra + at);
        if (n > n_bytes - at)
            break;
        if (id != ZIP_EXTRA_ZIP64 && id != EXTRA_ALIGNMENT) {
            memmove(ret_extra + n_kept, extra + at, n);
            n_kept += n;
        }
        at += n;
    }
    return n_kept;
}
