/* Marks of files: device, inode, size and time of writing.
 *
 * A file that somebody writes to or puts another one in the place of has another mark. Where many
 * files are marked a digest of each is kept. Between processes, and between machines that have the
 * same files, device and inode mean nothing: sums are of the rest.
 *
 * Called by datasets, and by the formats whose arrays lie in many files.
 */
#include "client/formats/files/file_mark.h"

void file_mark_of(const struct stat *st, struct file_mark *ret_mark)
{
    *ret_mark = (struct file_mark){
        .dev = st->st_dev, .ino = st->st_ino, .size = st->st_size, .written = st->st_mtim};
}

bool file_mark_is_same_file(const struct file_mark *a, const struct file_mark *b)
{
    return a->dev == b->dev && a->ino == b->ino;
}

bool file_mark_is_same(const struct file_mark *a, const struct file_mark *b)
{
    return file_mark_is_same_file(a, b) && a->size == b->size &&
           a->written.tv_sec == b->written.tv_sec && a->written.tv_nsec == b->written.tv_nsec;
}

/* One more number into a sum, which depends on their order (the finish of SplitMix64). */
static uint64_t mix(uint64_t sum, uint64_t number)
{
    uint64_t x = (sum ^ number) + UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t mix_content(uint64_t sum, const struct file_mark *mark)
{
    sum = mix(sum, (uint64_t)mark->size);
    sum = mix(sum, (uint64_t)mark->written.tv_sec);
    return mix(sum, (uint64_t)mark->written.tv_nsec);
}

uint64_t file_mark_digest(const struct file_mark *mark)
{
    return mix_content(mix(mix(0, (uint64_t)mark->dev), (uint64_t)mark->ino), mark) | 1;
}

void file_sums_name(struct file_sums *sums, const char *path)
{
    for (; *path; path++)
        sums->names = mix(sums->names, (unsigned char)*path);
    sums->names = mix(sums->names, 0);
}

void file_sums_content(struct file_sums *sums, const struct file_mark *mark)
{
    sums->contents = mix_content(sums->contents, mark);
}

void file_sums_add(struct file_sums *sums, const struct file_sums *more)
{
    sums->names = mix(sums->names, more->names);
    sums->contents = mix(sums->contents, more->contents);
}
