/* Members: opening one, and telling whether its file is what it was.
 *
 * A member is opened by its format as if it had been named alone, but for two things: its brackets
 * have been read already, and nobody looks for a file with such a name again.
 *
 * Called by many_look.c and opened.c.
 */
#include "client/formats/many/member.h"
#include "client/formats/format_impl.h"
#include "proto/util.h"

int member_open(const struct member *member, struct gad_client *client,
                struct gad_array **ret_array, struct gad_error *error)
{
    struct spec spec = *member->spec;
    spec.path = member->path;
    spec.format = format_of_file(spec.format, spec.path);
    spec.selection_at = member->selection_at;
    spec.format = format_of_file(spec.format, spec.path);
    return spec.format->open(client, &spec, member->name, false, ret_array, error);
}

void stamp_of(const struct stat *st, struct stamp *ret_stamp)
{
    *ret_stamp = (struct stamp){
        .dev = st->st_dev, .ino = st->st_ino, .size = st->st_size, .written = st->st_mtim};
}

int stamp_take(int fd, struct stamp *ret_stamp)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    stamp_of(&st, ret_stamp);
    return 0;
}

bool stamp_is_same_file(const struct stamp *a, const struct stamp *b)
{
    return a->dev == b->dev && a->ino == b->ino;
}

bool stamp_is_same(const struct stamp *a, const struct stamp *b)
{
    return stamp_is_same_file(a, b) && a->size == b->size &&
           a->written.tv_sec == b->written.tv_sec && a->written.tv_nsec == b->written.tv_nsec;
}
