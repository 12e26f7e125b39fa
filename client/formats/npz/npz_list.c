/* What is in an npz archive, for gad_list().
 *
 * Every array's header is read, which of a deflated one unpacks its first bytes. What has no
 * readable header is listed as what it is: an archive may hold other files.
 *
 * Called through the row of the format.
 */
#include "client/formats/npz/npz_member.h"
#include "proto/util.h"

#include <string.h>

/* "group/" in the archive's names is a folder of the zip program that made it. */
static bool is_folder(const char *name)
{
    return name[strlen(name) - 1] == '/';
}

static bool is_inside(const char *name, const char *group)
{
    size_t n = strlen(group);
    return n == 0 || (strncmp(name, group, n) == 0 && (name[n] == '\0' || name[n] == '/')) ||
           (strncmp(name, group, n) == 0 && strcmp(name + n, ".npy") == 0);
}

static int list_member(const struct npz_archive *archive, const struct zip_member *member,
                       gad_list_function *function, void *userdata)
{
    char what[NPY_WHAT_SIZE];
    struct npz_elements elements = {.stream = NULL};
    struct gad_error error;
    struct gad_listed entry = {
        .kind = GAD_LISTED_OTHER,
        .name = member->name,
        .type = "no array",
        .filters = "",
    };
    size_t n = strlen(member->name);
    _cleanup_free_ char *key = strdup(member->name);
    if (key && npz_member_elements(archive, member, what, &elements, &error) == 0) {
        if (n > 4 && strcmp(key + n - 4, ".npy") == 0)
            key[n - 4] = '\0';
        entry = (struct gad_listed){
            .kind = GAD_LISTED_ARRAY,
            .name = key,
            .type = *what ? what : gad_dtype_name((enum gad_dtype)elements.header.dtype),
            .is_served = !*what,
            .ndim = elements.header.ndim,
            .shape = elements.header.shape,
            .filters = member->method == ZIP_DEFLATED ? "deflate" : "",
        };
    }
    npz_stream_free(elements.stream);
    return function(userdata, &entry);
}

int npz_list(const char *path, const char *dataset, const char *name, gad_list_function *function,
             void *userdata, struct gad_error *error)
{
    struct npz_archive archive;
    int r = npz_archive_open(path, false, name, &archive, error);
    if (r)
        return r;
    bool is_stopped = false, is_there = *dataset == '\0';
    for (size_t i = 0; i < archive.directory.n_members && !is_stopped; i++) {
        const struct zip_member *member = &archive.directory.members[i];
        if (is_folder(member->name) || !is_inside(member->name, dataset))
            continue;
        is_there = true;
        is_stopped = list_member(&archive, member, function, userdata);
    }
    if (!is_there)
        r = npz_no_member(&archive, dataset, error);
    npz_archive_close(&archive);
    return r;
}
