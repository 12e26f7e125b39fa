/* A note of what a change overwrites, for the case that its process is killed in the middle.
 *
 *     | the file as it will be | offset, length, bytes | ... | trailer |
 *     0                        end                                     the file's length
 *
 * The note is behind what HDF5 takes for the end of the file, so others do not see it, and cut it
 * off when they open the file to write to it: a note is never older than what others have changed.
 * It moves and is copied with its file. Numbers are little-endian.
 *
 * The writer holds HDF5's lock on the file. So who gets that lock and finds a note knows that its
 * writer is dead. Where there are no locks, nothing is undone.
 *
 * Called by hdf5_driver.c (note) and, before a file is opened, hdf5_file.c.
 */
#include "client/formats/hdf5/writing/hdf5_undo.h"
#include "client/codecs/crc32c.h"
#include "client/formats/files/file_source.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "proto/util.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MARK "gad-undo"

struct trailer {
    uint64_t begin;       /* of the note, in the file */
    uint64_t n_old_bytes; /* of the file, before */
    uint64_t checksum;    /* of the pieces and of the two above */
    char mark[8];
};

struct head { /* of a piece, whose bytes follow */
    uint64_t offset_bytes, n_bytes;
};

static uint64_t checksum_of(const uint8_t *note, size_t n_bytes, const struct trailer *trailer)
{
    uint64_t numbers[] = {trailer->begin, trailer->n_old_bytes};
    return (uint64_t)crc32c(note, n_bytes) << 32 | crc32c(numbers, sizeof(numbers));
}

int hdf5_undo_note(int fd, const struct undo_piece *pieces, size_t n_pieces, uint64_t n_old_bytes,
                   uint64_t end)
{
    struct trailer trailer = {
        .begin = htole64(end), .n_old_bytes = htole64(n_old_bytes), .mark = MARK};
    size_t n_bytes = 0, at = 0;
    for (size_t i = 0; i < n_pieces; i++)
        n_bytes += sizeof(struct head) + pieces[i].n_bytes;
    _cleanup_free_ uint8_t *note = malloc(n_bytes + sizeof(trailer));
    if (!note)
        return -ENOMEM;
    for (size_t i = 0; i < n_pieces; i++) {
        struct head head = {htole64(pieces[i].offset_bytes), htole64(pieces[i].n_bytes)};
        size_t n_read;
        memcpy(note + at, &head, sizeof(head));
        at += sizeof(head);
        int r = file_read(fd, note + at, pieces[i].n_bytes, pieces[i].offset_bytes, &n_read);
        if (r || n_read < pieces[i].n_bytes)
            return r ? r : -EIO;
        at += pieces[i].n_bytes;
    }
    trailer.checksum = htole64(checksum_of(note, n_bytes, &trailer));
    memcpy(note + at, &trailer, sizeof(trailer));
    return file_write(fd, note, n_bytes + sizeof(trailer), end);
}

/* 0: there is a note, of n_bytes without its trailer. */
static int find(int fd, struct trailer *ret_trailer, size_t *ret_n_bytes)
{
    struct stat st;
    size_t n_read;
    if (fstat(fd, &st) < 0 || (size_t)st.st_size < sizeof(*ret_trailer))
        return -ENOENT;
    uint64_t at = (uint64_t)st.st_size - sizeof(*ret_trailer);
    int r = file_read(fd, ret_trailer, sizeof(*ret_trailer), at, &n_read);
    if (r || n_read < sizeof(*ret_trailer) || memcmp(ret_trailer->mark, MARK, 8) != 0 ||
        le64toh(ret_trailer->begin) > at || le64toh(ret_trailer->n_old_bytes) > at)
        return -ENOENT;
    *ret_n_bytes = at - le64toh(ret_trailer->begin);
    return 0;
}

/* The pieces come back from the last to the first: of those that overlap all bytes were the same.
 */
static int bring_back(int fd, const uint8_t *note, size_t n_bytes, uint64_t n_old_bytes)
{
    for (size_t at = 0; at + sizeof(struct head) <= n_bytes;) {
        struct head head;
        memcpy(&head, note + at, sizeof(head));
        at += sizeof(head);
        uint64_t n = le64toh(head.n_bytes);
        if (n > n_bytes - at)
            return -EBADMSG;
        int r = file_write(fd, note + at, n, le64toh(head.offset_bytes));
        if (r)
            return r;
        at += n;
    }
    return ftruncate(fd, (off_t)n_old_bytes) < 0 ? -errno : 0;
}

static int undo(int fd)
{
    struct trailer trailer;
    size_t n_bytes, n_read;
    int r = find(fd, &trailer, &n_bytes); /* it may have gone, or come, before the lock did */
    _cleanup_free_ uint8_t *note = r ? NULL : malloc(n_bytes + 1);
    if (!note)
        return r ? r : -ENOMEM;
    r = file_read(fd, note, n_bytes, le64toh(trailer.begin), &n_read);
    if (r || n_read < n_bytes || le64toh(trailer.checksum) != checksum_of(note, n_bytes, &trailer))
        return -EBADMSG;
    return bring_back(fd, note, n_bytes, le64toh(trailer.n_old_bytes));
}

void hdf5_undo(const char *path, const struct stat *st)
{
    struct trailer trailer;
    struct stat opened;
    size_t n_bytes;
    _cleanup_fd_ int reader = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (reader < 0 || find(reader, &trailer, &n_bytes) || !hdf5_file_has_locking())
        return;
    _cleanup_fd_ int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &opened) < 0 || opened.st_dev != st->st_dev ||
        opened.st_ino != st->st_ino || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return;
    (void)undo(fd); /* what it cannot bring back is as it was left: HDF5 says what that is */
}
