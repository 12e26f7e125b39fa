/* Members whose reader wants to know of every change (array.h: watch).
 *
 * A member that is opened is compared with its mark before that; those that are open when the
 * reader asks, then; those that were closed in between, when they were closed. So each is looked at
 * after it was read. Of a store of many files, whose array watches them itself while it is open,
 * there is a sum over all of them, with which those are compared that are there when it is opened
 * again.
 *
 * Called by who reads, and by opened.c.
 */
#include "client/formats/many/many_impl.h"
#include "proto/util.h"

#include <string.h>

static int fail_gone(struct many *many, const struct member *member)
{
    struct gad_error error;
    error_set(&error, GAD_NOT_FOUND, member->name,
              "'%.200s' was removed after it was opened: open the array again", member->path);
    error_expected(&error, "the file as it was");
    error_found(&error, "%s", strerrordesc_np(errno));
    return many_fail(many, ESTALE, &error);
}

int many_check(struct many *many, const struct member *member)
{
    struct file_mark now;
    struct stat st;
    if (!many->is_watched)
        return 0;
    if (stat(member->path, &st) < 0)
        return fail_gone(many, member);
    file_mark_of(&st, &now);
    bool is_same = member->is_folder ? file_mark_is_same_file(&now, &member->mark)
                                     : file_mark_is_same(&now, &member->mark);
    return is_same ? 0 : many_fail_changed(many, member, &now);
}

int many_check_inside(struct many *many, const struct member *member, const struct gad_array *array)
{
    struct file_sums inside = {0};
    if (!many->is_watched || !array->provider->watch)
        return 0;
    int r = array->provider->watch(array->provider_state, &inside);
    if (r || !member->is_folder || inside.contents == member->inside.contents)
        return r;
    return many_fail_changed(many, member, &member->mark);
}

static int look_inside(struct many *many, struct member *member)
{
    struct gad_array *array;
    struct gad_error error;
    int r = 0;
    if (member_open(member, NULL, &array, &error))
        return many_fail(many, ESTALE, &error);
    if (array->access == ACCESS_PROVIDER && array->provider->watch)
        r = array->provider->watch(array->provider_state, &member->inside);
    gad_array_release(array);
    return r;
}

int many_watch(void *state, struct file_sums *sums)
{
    struct many *many = state;
    int r = 0;
    for (size_t i = 0; i < many->n_members && r == 0; i++) {
        struct member *member = &many->members[i];
        file_sums_name(sums, member->path);
        if (member->is_folder && !many->is_watched)
            r = look_inside(many, member);
        else if (!member->is_folder)
            file_sums_content(sums, &member->mark);
        if (member->is_folder)
            file_sums_add(sums, &member->inside);
    }
    many_close_all(many); /* they are opened again, as those that are watched */
    many->is_watched |= r == 0;
    return r;
}

/* Nobody else has a member open or opens one. */
int many_verify(void *state)
{
    struct many *many = state;
    int r = atomic_exchange(&many->has_changed, false) ? ESTALE : 0;
    for (const struct opened *opened = many->newest; opened && r == 0; opened = opened->older)
        r = many_check(many, opened->member);
    return r;
}
