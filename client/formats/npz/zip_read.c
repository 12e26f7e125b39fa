/* Reading the directory of a zip archive.
 *
 *     [prefix] [local header, data]... [directory] [Zip64 end, locator] [end, comment]
 *
 * The end record is found from behind: the last one wins, as in Python's zipfile, so that both see
 * the same archive. Where the directory begins follows from its size, and what stands before the
 * archive (a program that unpacks itself) from the difference to the offset that it names.
 *
 * A directory is taken whole or not at all: its records must fill it, each member must lie before
 * it, and no two may overlap, which only archives do that were made to unpack into far more than
 * they are. Of a member that is read the local header must say the same as the directory.
 *
 * Pure but for the source's function. Called by npz.c, npz_member.c and the fuzz target.
 */
#include "client/formats/npz/zip_read.h"
#include "proto/util.h"

#include <inttypes.h>
#include <string.h>

#define SIGN_LOCAL   0x04034b50u
#define SIGN_CENTRAL 0x02014b50u
#define SIGN_END     0x06054b50u
#define SIGN_END64   0x06064b50u
#define SIGN_LOCATOR 0x07064b50u

#define END64_BYTES         56
#define LOCATOR_BYTES       20
#define MAX_COMMENT         65535
#define MAX_DIRECTORY_BYTES (UINT64_C(64) << 20) /* a million members */
#define MAX_INFLATION       1032 /* times as long as deflated data their result can be */

#define FLAGS_UNREADABLE 0x2060 /* patches, strong encryption, masked headers */

static int refuse(struct gad_error *error, const char *name, const char *why)
{
    return error_set(error, GAD_BAD_FORMAT, name, "no usable zip archive: %s", why);
}

struct end {
    uint64_t at;              /* where the directory ends at the latest */
    uint64_t n_members;       /* of all disks */
    uint64_t n_bytes, offset; /* of the directory */
};

/* The last one in n_bytes; -1: there is none. */
static int64_t find_end(const uint8_t *bytes, size_t n_bytes)
{
    for (size_t at = n_bytes - ZIP_END_BYTES + 1; at-- > 0;)
        if (zip_u32(bytes + at) == SIGN_END &&
            zip_u16(bytes + at + 20) <= n_bytes - at - ZIP_END_BYTES)
            return (int64_t)at;
    return -1;
}

/* Behind an archive of 4 GiB, or of 65536 members. */
static int read_end64(const struct zip_source *source, const uint8_t *locator, uint64_t locator_at,
                      const char *name, struct end *end, struct gad_error *error)
{
    uint8_t b[END64_BYTES];
    uint64_t at = zip_u64(locator + 8);
    if (locator_at < END64_BYTES || zip_u32(locator + 4) != 0 || zip_u32(locator + 16) > 1)
        return refuse(error, name, "its Zip64 locator is not usable");
    /* A prefix moves it; then it stands before the locator. */
    for (int i = 0; i < 2; i++) {
        uint64_t try = i == 0 ? locator_at - END64_BYTES : at;
        if (try > locator_at - END64_BYTES)
            continue;
        int r = source->read(source->state, b, sizeof(b), try);
        if (r)
            return r;
        if (zip_u32(b) != SIGN_END64)
            continue;
        if (zip_u32(b + 16) != 0 || zip_u32(b + 20) != 0 || zip_u64(b + 24) != zip_u64(b + 32))
            return refuse(error, name, "it is one of several volumes");
        *end = (struct end){try, zip_u64(b + 32), zip_u64(b + 40), zip_u64(b + 48)};
        return 0;
    }
    return refuse(error, name, "it has a Zip64 locator and no Zip64 end record");
}

static int no_end(struct gad_error *error, const char *name)
{
    error_set(error, GAD_BAD_FORMAT, name, "no zip archive, or one that is cut short");
    error_expected(error, "an end record among the last %d bytes", MAX_COMMENT + ZIP_END_BYTES);
    error_found(error, "none");
    return GAD_BAD_FORMAT;
}

static int read_end(const struct zip_source *source, const char *name,
                    struct zip_directory *directory, struct end *ret_end, struct gad_error *error)
{
    size_t n = (size_t)min_u64(source->size_bytes, MAX_COMMENT + ZIP_END_BYTES + LOCATOR_BYTES);
    if (n < ZIP_END_BYTES)
        return no_end(error, name);
    _cleanup_free_ uint8_t *tail = malloc(n);
    if (!tail)
        return -ENOMEM;
    uint64_t tail_at = source->size_bytes - n;
    int r = source->read(source->state, tail, n, tail_at);
    if (r)
        return r;
    int64_t found = find_end(tail, n);
    if (found < 0)
        return no_end(error, name);
    size_t at = (size_t)found;
    const uint8_t *b = tail + at;
    struct end end = {tail_at + at, zip_u16(b + 10), zip_u32(b + 12), zip_u32(b + 16)};
    if (at >= LOCATOR_BYTES && zip_u32(b - LOCATOR_BYTES) == SIGN_LOCATOR)
        r = read_end64(source, b - LOCATOR_BYTES, end.at - LOCATOR_BYTES, name, &end, error);
    else if (zip_u16(b + 4) != 0 || zip_u16(b + 6) != 0 || zip_u16(b + 8) != zip_u16(b + 10))
        r = refuse(error, name, "it is one of several volumes");
    if (r)
        return r;
    directory->n_comment = zip_u16(b + 20);
    directory->comment = malloc(directory->n_comment + 1);
    if (!directory->comment)
        return -ENOMEM;
    memcpy(directory->comment, b + ZIP_END_BYTES, directory->n_comment);
    *ret_end = end;
    return 0;
}

const uint8_t *zip_extra_find(const uint8_t *extra, size_t n_bytes, uint16_t id, size_t *ret_n)
{
    for (size_t at = 0; n_bytes - at >= 4;) {
        size_t n = zip_u16(extra + at + 2);
        if (n > n_bytes - at - 4)
            return NULL;
        if (zip_u16(extra + at) == id) {
            *ret_n = n;
            return extra + at + 4;
        }
        at += 4 + n;
    }
    return NULL;
}

/* Takes the next number of a Zip64 field where the record has no room for it. */
static bool take64(uint64_t *value, uint64_t absent, const uint8_t **field, size_t *n)
{
    if (*value != absent)
        return true;
    if (*n < 8)
        return false;
    *value = zip_u64(*field);
    *field += 8;
    *n -= 8;
    return true;
}

static bool read_sizes(const uint8_t *extra, size_t n_extra, struct zip_member *member)
{
    size_t n = 0;
    const uint8_t *field = zip_extra_find(extra, n_extra, ZIP_EXTRA_ZIP64, &n);
    return take64(&member->size_bytes, UINT32_MAX, &field, &n) &&
           take64(&member->packed_bytes, UINT32_MAX, &field, &n) &&
           take64(&member->header_offset, UINT32_MAX, &field, &n);
}

/* The record at `at`, of a directory that has n_left bytes there. */
static int parse_record(const struct zip_directory *directory, size_t at, const char *name,
                        struct zip_member *member, struct gad_error *error)
{
    const uint8_t *b = directory->bytes + at;
    size_t n_left = directory->n_bytes - at;
    if (n_left < ZIP_CENTRAL_BYTES || zip_u32(b) != SIGN_CENTRAL)
        return refuse(error, name, "its directory has fewer members than it says");
    size_t n_name = zip_u16(b + 28), n_extra = zip_u16(b + 30), n_comment = zip_u16(b + 32);
    if (n_name + n_extra + n_comment > n_left - ZIP_CENTRAL_BYTES)
        return refuse(error, name, "its directory ends inside a record");
    if (n_name == 0 || memchr(b + ZIP_CENTRAL_BYTES, '\0', n_name))
        return refuse(error, name, "a member's name is empty or has a NUL in it");
    *member = (struct zip_member){
        .flags = zip_u16(b + 8),
        .method = zip_u16(b + 10),
        .crc = zip_u32(b + 16),
        .packed_bytes = zip_u32(b + 20),
        .size_bytes = zip_u32(b + 24),
        .header_offset = zip_u32(b + 42),
        .record_at = at,
        .record_bytes = ZIP_CENTRAL_BYTES + n_name + n_extra + n_comment,
    };
    if (zip_u16(b + 34) != 0 && zip_u16(b + 34) != UINT16_MAX)
        return refuse(error, name, "it is one of several volumes");
    if (!read_sizes(b + ZIP_CENTRAL_BYTES + n_name, n_extra, member))
        return refuse(error, name, "a member's Zip64 sizes are missing");
    member->name = strndup((const char *)b + ZIP_CENTRAL_BYTES, n_name);
    return member->name ? 0 : -ENOMEM;
}

/* From an offset in the archive to one in the file. */
static int place(const struct zip_directory *directory, struct zip_member *member, const char *name,
                 struct gad_error *error)
{
    uint64_t end, least = ZIP_LOCAL_BYTES + strlen(member->name);
    if (__builtin_add_overflow(member->header_offset, directory->prefix_bytes,
                               &member->header_offset) ||
        __builtin_add_overflow(member->header_offset, least, &end) ||
        __builtin_add_overflow(end, member->packed_bytes, &end) || end > directory->offset_bytes) {
        error_set(error, GAD_BAD_FORMAT, name,
                  "no usable zip archive: '%.100s' would lie outside of it", member->name);
        error_expected(error, "an end at %" PRIu64 " or before", directory->offset_bytes);
        error_found(error, "%" PRIu64 " bytes at %" PRIu64, member->packed_bytes,
                    member->header_offset);
        return GAD_BAD_FORMAT;
    }
    return 0;
}

static int by_offset(const void *a, const void *b)
{
    const struct zip_member *const *x = a, *const *y = b;
    return ((*x)->header_offset > (*y)->header_offset) -
           ((*x)->header_offset < (*y)->header_offset);
}

static int check_overlaps(const struct zip_directory *directory, const char *name,
                          struct gad_error *error)
{
    size_t n = directory->n_members;
    if (n == 0)
        return 0;
    _cleanup_free_ struct zip_member **sorted = malloc(n * sizeof(struct zip_member *));
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        sorted[i] = &directory->members[i];
    qsort(sorted, n, sizeof(struct zip_member *), by_offset);
    for (size_t i = 0; i < n; i++) {
        struct zip_member *member = sorted[i];
        uint64_t end =
            member->header_offset + ZIP_LOCAL_BYTES + strlen(member->name) + member->packed_bytes;
        member->most_end = i + 1 < n ? sorted[i + 1]->header_offset : directory->offset_bytes;
        if (end > member->most_end)
            return error_set(error, GAD_BAD_FORMAT, name,
                             "no usable zip archive: '%.100s' and '%.100s' overlap", member->name,
                             sorted[i + 1]->name);
    }
    return 0;
}

static int parse_directory(struct zip_directory *directory, uint64_t n_members, const char *name,
                           struct gad_error *error)
{
    size_t at = 0;
    directory->members = calloc((size_t)max_u64(n_members, 1), sizeof(struct zip_member));
    if (!directory->members)
        return -ENOMEM;
    for (; directory->n_members < n_members; directory->n_members++) {
        struct zip_member *member = &directory->members[directory->n_members];
        int r = parse_record(directory, at, name, member, error);
        if (r)
            return r;
        at += member->record_bytes;
        r = place(directory, member, name, error);
        if (r) {
            free_ptr(&member->name);
            return r;
        }
    }
    if (at != directory->n_bytes)
        return refuse(error, name, "its directory has more members than it says");
    return check_overlaps(directory, name, error);
}

static int read_directory(const struct zip_source *source, const struct end *end, const char *name,
                          struct zip_directory *directory, struct gad_error *error)
{
    if (end->n_bytes > end->at || end->offset > end->at - end->n_bytes)
        return refuse(error, name, "its directory would lie outside of it");
    if (end->n_bytes > MAX_DIRECTORY_BYTES || end->n_members > end->n_bytes / ZIP_CENTRAL_BYTES)
        return refuse(error, name, "its directory cannot have the size that it says");
    directory->offset_bytes = end->at - end->n_bytes;
    directory->prefix_bytes = directory->offset_bytes - end->offset;
    directory->n_bytes = (size_t)end->n_bytes;
    directory->bytes = malloc((size_t)max_u64(end->n_bytes, 1));
    if (!directory->bytes)
        return -ENOMEM;
    int r =
        source->read(source->state, directory->bytes, directory->n_bytes, directory->offset_bytes);
    return r ? r : parse_directory(directory, end->n_members, name, error);
}

int zip_directory_read(const struct zip_source *source, const char *name,
                       struct zip_directory *ret_directory, struct gad_error *error)
{
    struct end end;
    struct zip_directory directory = {.bytes = NULL};
    int r = read_end(source, name, &directory, &end, error);
    if (r == 0)
        r = read_directory(source, &end, name, &directory, error);
    if (r) {
        zip_directory_deinit(&directory);
        return r;
    }
    *ret_directory = directory;
    return 0;
}

void zip_directory_deinit(struct zip_directory *directory)
{
    for (size_t i = 0; i < directory->n_members; i++)
        free(directory->members[i].name);
    free_ptr(&directory->members);
    free_ptr(&directory->bytes);
    free_ptr(&directory->comment);
    directory->n_members = 0;
}

/* Members ------------------------------------------------------------------------------------- */

static int refuse_member(struct gad_error *error, const char *name, const struct zip_member *member,
                         const char *why)
{
    return error_set(error, GAD_BAD_FORMAT, name, "the member '%.120s' is not usable: %s",
                     member->name, why);
}

/* What the header says without the directory; its sizes may be missing where they follow the data.
 */
static bool agrees(const uint8_t *b, const struct zip_local *local, const struct zip_member *member)
{
    struct zip_member said = {
        .packed_bytes = zip_u32(b + 18),
        .size_bytes = zip_u32(b + 22),
    };
    if (zip_u16(b + 8) != member->method)
        return false;
    if (zip_u16(b + 6) & ZIP_FLAG_DESCRIPTOR)
        return true;
    return zip_u32(b + 14) == member->crc && read_sizes(local->extra, local->n_extra, &said) &&
           said.packed_bytes == member->packed_bytes && said.size_bytes == member->size_bytes;
}

int zip_member_local(const struct zip_source *source, const struct zip_member *member,
                     const char *name, struct zip_local *ret_local, struct gad_error *error)
{
    uint8_t b[ZIP_LOCAL_BYTES];
    size_t n_name = strlen(member->name);
    _cleanup_free_ char *local_name = malloc(n_name);
    if (!local_name)
        return -ENOMEM;
    /* place() has seen that header and name are inside. */
    int r = source->read(source->state, b, sizeof(b), member->header_offset);
    if (r == 0)
        r = source->read(source->state, local_name, n_name, member->header_offset + sizeof(b));
    if (r)
        return r;
    if (zip_u32(b) != SIGN_LOCAL || zip_u16(b + 26) != n_name ||
        memcmp(local_name, member->name, n_name) != 0)
        return refuse_member(error, name, member, "its header is of something else");
    ret_local->n_extra = zip_u16(b + 28);
    ret_local->data_offset = member->header_offset + sizeof(b) + n_name + ret_local->n_extra;
    if (ret_local->data_offset + member->packed_bytes > member->most_end)
        return refuse_member(error, name, member, "it would reach into what follows it");
    r = source->read(source->state, ret_local->extra, ret_local->n_extra,
                     ret_local->data_offset - ret_local->n_extra);
    if (r)
        return r;
    if (!agrees(b, ret_local, member))
        return refuse_member(error, name, member,
                             "its header and the directory differ about its size or CRC");
    return 0;
}

static const char *method_name(unsigned method)
{
    switch (method) {
    case 1: return "shrink";
    case 6: return "implode";
    case 9: return "deflate64";
    case 12: return "bzip2";
    case 14: return "lzma";
    case 20:
    case 93: return "zstd";
    case 95: return "xz";
    case 98: return "ppmd";
    case 99: return "AES encryption";
    default: return "a method that is not known";
    }
}

static int check_method(const struct zip_member *member, const char *name, struct gad_error *error)
{
    if (member->flags & ZIP_FLAG_ENCRYPTED)
        return refuse_member(error, name, member, "it is encrypted");
    if (member->flags & FLAGS_UNREADABLE)
        return refuse_member(error, name, member, "it is a patch, or its header is hidden");
    if (member->method != ZIP_STORED && member->method != ZIP_DEFLATED) {
        error_set(error, GAD_BAD_FORMAT, name, "the member '%.120s' is packed by %s (method %u)",
                  member->name, method_name(member->method), member->method);
        error_expected(error, "stored or deflated, as numpy.savez and savez_compressed write");
        error_found(error, "method %u", member->method);
        return GAD_BAD_FORMAT;
    }
    bool is_possible = member->method == ZIP_STORED
                           ? member->size_bytes == member->packed_bytes
                           : member->size_bytes / MAX_INFLATION <= member->packed_bytes;
    if (is_possible)
        return 0;
    error_set(error, GAD_BAD_FORMAT, name, "the member '%.120s' cannot have the size that it says",
              member->name);
    error_expected(error, "%s",
                   member->method == ZIP_STORED ? "as many bytes as are stored"
                                                : "at most 1032 times what is stored");
    error_found(error, "%" PRIu64 " bytes of %" PRIu64, member->size_bytes, member->packed_bytes);
    return GAD_BAD_FORMAT;
}

int zip_member_locate(const struct zip_source *source, const struct zip_member *member,
                      const char *name, uint64_t *ret_data_offset, struct gad_error *error)
{
    int r = check_method(member, name, error);
    if (r)
        return r;
    _cleanup_free_ struct zip_local *local = malloc(sizeof(*local));
    if (!local)
        return -ENOMEM;
    r = zip_member_local(source, member, name, local, error);
    if (r == 0)
        *ret_data_offset = local->data_offset;
    return r;
}
