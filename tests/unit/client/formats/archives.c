/* Helpers of the tests of npz; see archives.h. */
#include "archives.h"

#include <isa-l.h>

void *npy_bytes(const char *descr, bool fortran_order, const char *shape, size_t n_bytes,
                size_t *ret_n_bytes)
{
    char text[200];
    int n = snprintf(text, sizeof(text), "{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n",
                     descr, fortran_order ? "True" : "False", shape);
    uint8_t *bytes = malloc(10 + (size_t)n + n_bytes);
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    bytes[8] = (uint8_t)n;
    bytes[9] = (uint8_t)(n >> 8);
    memcpy(bytes + 10, text, (size_t)n);
    for (size_t i = 0; i < n_bytes; i++)
        bytes[10 + (size_t)n + i] = (uint8_t)i;
    *ret_n_bytes = 10 + (size_t)n + n_bytes;
    return bytes;
}

static void append(struct zip_bytes *to, const void *bytes, size_t n_bytes)
{
    if (n_bytes > to->room - to->n_bytes) {
        to->room = 2 * to->room + n_bytes;
        to->bytes = realloc(to->bytes, to->room);
    }
    memcpy(to->bytes + to->n_bytes, bytes, n_bytes);
    to->n_bytes += n_bytes;
}

static size_t deflate(const struct made_member *member, uint8_t *to, size_t room)
{
    struct isal_zstream stream;
    isal_deflate_stateless_init(&stream);
    stream.next_in = (uint8_t *)(uintptr_t)member->data;
    stream.avail_in = (uint32_t)member->n_bytes;
    stream.next_out = to;
    stream.avail_out = (uint32_t)room;
    stream.end_of_stream = 1;
    cr_assert(eq(int, isal_deflate_stateless(&stream), COMP_OK));
    return stream.total_out;
}

static void add_member(struct zip_bytes *to, const struct made_member *member,
                       struct zip_record *record)
{
    size_t room = member->n_bytes + member->n_bytes / 8 + 1024;
    uint8_t *packed = malloc(room), descriptor[16] = "PK\x07\x08";
    *record = zip_record_stored(member->name, crc32_gzip_refl(0, member->data, member->n_bytes),
                                member->n_bytes, to->n_bytes);
    record->flags |= member->flags;
    if (member->is_deflated) {
        record->method = ZIP_DEFLATED;
        record->packed_bytes = deflate(member, packed, room);
    }
    struct zip_record local = *record;
    if (member->flags & ZIP_FLAG_DESCRIPTOR)
        local.crc = 0, local.packed_bytes = local.size_bytes = 0;
    zip_append_local(to, &local, false);
    append(to, member->is_deflated ? packed : member->data, record->packed_bytes);
    const uint32_t numbers[] = {record->crc, (uint32_t)record->packed_bytes,
                                (uint32_t)record->size_bytes};
    memcpy(descriptor + 4, numbers, sizeof(numbers));
    if (member->flags & ZIP_FLAG_DESCRIPTOR)
        append(to, descriptor, sizeof(descriptor));
    free(packed);
}

uint8_t *archive_bytes(const struct made_member *members, size_t n_members, size_t *ret_n_bytes)
{
    struct zip_bytes bytes = {.bytes = NULL}, directory = {.bytes = NULL};
    for (size_t i = 0; i < n_members; i++) {
        struct zip_record record;
        add_member(&bytes, &members[i], &record);
        zip_append_central(&directory, &record, NULL);
    }
    zip_append_end(&directory, n_members, directory.n_bytes, bytes.n_bytes, NULL, 0);
    append(&bytes, directory.bytes, directory.n_bytes);
    zip_bytes_deinit(&directory);
    *ret_n_bytes = bytes.n_bytes;
    return bytes.bytes;
}

void archive_put(const char *path, const struct made_member *members, size_t n_members)
{
    size_t n;
    uint8_t *bytes = archive_bytes(members, n_members, &n);
    file_put(path, bytes, n);
    free(bytes);
}

size_t archive_find(const uint8_t *bytes, size_t n_bytes, uint32_t sign, int i)
{
    for (size_t at = 0; at + 4 <= n_bytes; at++)
        if (zip_u32(bytes + at) == sign && i-- == 0)
            return at;
    cr_assert(false, "no record %x", sign);
    return 0;
}
