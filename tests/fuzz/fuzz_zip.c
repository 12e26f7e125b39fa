/* Any bytes as an npz archive.
 *
 * Checked: what the directory says of an archive that is accepted lies inside it and apart from the
 * rest; a member whose elements can be located is read to its end, whatever it unpacks to, within
 * the size that it says; the records of the directory written again are read as the same members.
 */
#include "client/formats/npz/npz_member.h"
#include "client/formats/npz/zip_write.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_READ (UINT64_C(1) << 22)

static void read_all(const struct npz_elements *elements, const struct zip_member *member)
{
    static uint8_t block[5000];
    for (uint64_t at = 0; elements->stream && at < member->size_bytes && at < MOST_READ;) {
        size_t n = sizeof(block);
        if (n > member->size_bytes - at)
            n = (size_t)(member->size_bytes - at);
        int r = npz_stream_read(elements->stream, block, n, at);
        assert(r >= 0 && (r != EBADMSG || npz_stream_fault(elements->stream)));
        if (r)
            return;
        at += n;
    }
}

static void check_member(const struct npz_archive *archive, const struct zip_member *member)
{
    struct npz_elements elements;
    struct gad_error error = {0};
    char what[NPY_WHAT_SIZE];
    assert(member->name[0] && member->header_offset + member->packed_bytes <= member->most_end);
    assert(member->most_end <= archive->directory.offset_bytes);
    int r = npz_member_elements(archive, member, what, &elements, &error);
    if (r) {
        assert(r > 0 && error.status == (enum gad_status)r && error.message[0]);
        return;
    }
    assert(elements.header.data_offset_bytes <= member->size_bytes);
    assert(elements.data_offset + member->packed_bytes <= member->most_end);
    read_all(&elements, member);
    npz_stream_free(elements.stream);
}

static int read_memory(void *state, void *buffer, size_t n_bytes, uint64_t offset_bytes)
{
    const struct zip_bytes *bytes = state;
    assert(offset_bytes + n_bytes <= bytes->n_bytes);
    memcpy(buffer, bytes->bytes + offset_bytes, n_bytes);
    return 0;
}

/* Members of no bytes with the names of these, one behind the other. */
static void check_written(const struct zip_directory *directory)
{
    struct zip_bytes bytes = {.bytes = NULL}, records = {.bytes = NULL};
    struct zip_directory again;
    for (size_t i = 0; i < directory->n_members; i++) {
        const char *name = directory->members[i].name;
        struct zip_record record = zip_record_stored(name, (uint32_t)i, 0, bytes.n_bytes);
        zip_append_local(&bytes, &record, i % 2);
        zip_append_central(&records, &record, NULL);
    }
    uint64_t at = bytes.n_bytes;
    bytes.bytes = realloc(bytes.bytes, bytes.n_bytes + records.n_bytes + 1);
    assert(bytes.bytes);
    if (records.n_bytes)
        memcpy(bytes.bytes + at, records.bytes, records.n_bytes);
    bytes.n_bytes += records.n_bytes;
    bytes.room = bytes.n_bytes;
    zip_append_end(&bytes, directory->n_members, records.n_bytes, at, NULL, 0);
    const struct zip_source source = {bytes.n_bytes, read_memory, &bytes};
    int r = zip_directory_read(&source, "x", &again, NULL);
    assert(r == 0 && again.n_members == directory->n_members);
    for (size_t i = 0; i < again.n_members; i++)
        assert(strcmp(again.members[i].name, directory->members[i].name) == 0 &&
               again.members[i].crc == i);
    zip_directory_deinit(&again);
    zip_bytes_deinit(&bytes);
    zip_bytes_deinit(&records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct npz_archive archive;
    struct gad_error error = {0};
    int fd = memfd_create("x.npz", MFD_CLOEXEC);
    assert(fd >= 0 && write(fd, data, n_bytes) == (ssize_t)n_bytes);
    int r = npz_archive_read(fd, "x.npz", "x", &archive, &error);
    if (r) {
        assert(r > 0 && error.status == (enum gad_status)r && error.message[0]);
        return 0;
    }
    for (size_t i = 0; i < archive.directory.n_members; i++)
        check_member(&archive, &archive.directory.members[i]);
    check_written(&archive.directory);
    npz_archive_close(&archive);
    return 0;
}
