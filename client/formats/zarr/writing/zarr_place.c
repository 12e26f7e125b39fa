/* New arrays in their place, whole or not at all.
 *
 *     create   the way is walked as far as it is there; a folder with a hidden name is made in the
 *              last group (or beside a new store), with the new groups and the array in it
 *     write    chunks; there are no metadata yet, so that the folder is no node to anybody
 *     commit   metadata, then one rename: the folder gets its name, or changes places with the
 * array that it replaces, which is removed under the hidden name
 *
 * Groups may have appeared meanwhile, made by another output of the same job for example: then the
 * part of the folder that is still new is moved into them. After a process was killed its hidden
 * folder stays until the user's next output beside it (hidden.c).
 *
 * Called by zarr_output.c.
 */
#include "client/formats/zarr/writing/zarr_place.h"
#include "client/formats/files/file_source.h"
#include "client/formats/zarr/zarr_store.h"
#include "client/tree.h"
#include "proto/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static int open_folder(int at, const char *name)
{
    int fd = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* The store's folder and name, links followed where it is there. */
static int split_path(struct zarr_place *place, const char *path, const char *dataset)
{
    _cleanup_free_ char *given = strdup(path);
    if (!given)
        return -ENOMEM;
    for (size_t n = strlen(given); n > 1 && given[n - 1] == '/';)
        given[--n] = '\0';
    _cleanup_free_ char *real = realpath(given, NULL);
    if (!real && errno != ENOENT)
        return -errno;
    const char *store = real ? real : given, *slash = strrchr(store, '/');
    place->folder =
        slash ? strndup(store, slash == store ? 1 : (size_t)(slash - store)) : strdup(".");
    if (!place->folder || asprintf(&place->text, "%s%s", slash ? slash + 1 : store, dataset) < 0)
        return -ENOMEM;
    place->n_parts = 1;
    for (const char *at = dataset; *at; at++)
        place->n_parts += *at == '/';
    place->parts = calloc(place->n_parts, sizeof(*place->parts));
    if (!place->parts)
        return -ENOMEM;
    char *at = place->text;
    for (unsigned i = 0; i < place->n_parts; i++) {
        place->parts[i] = strsep(&at, "/");
        if (!*place->parts[i] || strlen(place->parts[i]) > NAME_MAX)
            return -ENAMETOOLONG;
    }
    return 0;
}

/* What a part is, in the folder that is open. */
static int kind_of(int folder_fd, const char *part, const char *name, enum zarr_kind *ret_kind,
                   int *ret_version, struct gad_error *error)
{
    char dataset[NAME_MAX + 2], path[] = ".";
    const struct zarr_store store = {.fd = folder_fd, .path = path};
    struct zarr_node node;
    snprintf(dataset, sizeof(dataset), "/%.*s", NAME_MAX, part);
    int r = zarr_store_node(&store, dataset, name, &node, error);
    if (r)
        return r;
    *ret_kind = node.kind;
    *ret_version = node.version;
    zarr_node_deinit(&node);
    return 0;
}

static bool is_empty(int folder_fd, const char *part)
{
    int fd = openat(folder_fd, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (!directory) {
        close_fd(&fd);
        return false;
    }
    while (n < 3 && readdir(directory))
        n++;
    closedir(directory);
    return n < 3;
}

/* The array's own name is taken. */
static int check_taken(const struct zarr_place *place, int folder_fd, enum zarr_kind kind,
                       const char *name, struct gad_error *error)
{
    const char *part = place->parts[place->n_parts - 1];
    if (kind == ZARR_GROUP) {
        error_set(error, GAD_EXISTS, name, "'%.160s' is a group, and may have arrays in it", part);
        error_expected(error, "the name of an array in it, as in %.80s:/name", name);
        error_found(error, "a group");
        return GAD_EXISTS;
    }
    if (kind == ZARR_NOTHING && !is_empty(folder_fd, part)) {
        error_set(error, GAD_EXISTS, name, "'%.160s' is there and no array of Zarr", part);
        error_expected(error, "an array, or nothing");
        error_found(error, "another folder");
        return GAD_EXISTS;
    }
    if (kind == ZARR_ARRAY && !place->replaces)
        return error_set(error, GAD_EXISTS, name, "there is an array '%.160s' already", part);
    return 0;
}

static int not_a_group(const char *part, enum zarr_kind kind, const char *name,
                       struct gad_error *error)
{
    const char *what = kind == ZARR_ARRAY ? "an array" : "no group of Zarr";
    error_set(error, GAD_BAD_ARGUMENT, name, "'%.160s' is %s", part, what);
    error_expected(error, "a group on the way to the array");
    error_found(error, "%s", what);
    return GAD_BAD_ARGUMENT;
}

/* Goes on from the open parent, as far as the way is there and leads through groups. */
static int walk(struct zarr_place *place, const char *name, struct gad_error *error)
{
    for (;;) {
        const char *part = place->parts[place->n_there];
        bool is_last = place->n_there + 1 == place->n_parts;
        enum zarr_kind kind;
        int version = 3;
        int fd = open_folder(place->parent_fd, part);
        if (fd == -ENOENT)
            return 0;
        if (fd < 0)
            return fd == -ENOTDIR
                       ? error_set(error, GAD_EXISTS, name, "'%.160s' is there and no folder", part)
                       : file_path_error(error, -fd, part, name);
        int r = kind_of(place->parent_fd, part, name, &kind, &version, error);
        if (r == 0 && is_last)
            r = check_taken(place, place->parent_fd, kind, name, error);
        else if (r == 0 && kind != ZARR_GROUP)
            r = not_a_group(part, kind, name, error);
        if (r || is_last) {
            close(fd);
            return r;
        }
        place->version = version;
        close_fd(&place->parent_fd);
        place->parent_fd = fd;
        place->n_there++;
    }
}

/* The folders of the new parts. */
static int make_folders(struct zarr_place *place)
{
    char tag[HIDDEN_TAG_SIZE];
    struct stat st;
    int r = hidden_tag(tag);
    if (r)
        return r;
    hidden_sweep(place->parent_fd);
    const char *first = place->parts[place->n_there];
    hidden_file_name(first, tag, place->temporary);
    if (mkdirat(place->parent_fd, place->temporary, 0777) < 0)
        return -errno;
    place->is_made = true;
    int fd = openat(place->parent_fd, place->temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* An array that is replaced keeps who may enter it. */
    if (fd >= 0 && fstatat(place->parent_fd, first, &st, 0) == 0)
        (void)!fchmod(fd, st.st_mode & 07777);
    for (unsigned i = place->n_there + 1; fd >= 0 && i < place->n_parts; i++) {
        int inner = mkdirat(fd, place->parts[i], 0777) < 0
                        ? -1
                        : openat(fd, place->parts[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close_fd(&fd);
        fd = inner;
    }
    place->array_fd = fd;
    return fd < 0 ? -errno : 0;
}

static int check_names(const struct zarr_place *place, const char *name, struct gad_error *error)
{
    for (unsigned i = 1; i < place->n_parts; i++) {
        if (place->parts[i][0] != '.' && strncmp(place->parts[i], "__", 2) != 0)
            continue;
        error_set(error, GAD_BAD_ARGUMENT, name, "'%.160s' is no name for an array or group",
                  place->parts[i]);
        error_expected(error, "a name that begins with neither '.' nor '__'");
        error_found(error, "'%.100s'", place->parts[i]);
        return GAD_BAD_ARGUMENT;
    }
    return 0;
}

int zarr_place_init(struct zarr_place *place, const char *path, const char *dataset, bool replace,
                    const char *name, struct gad_error *error)
{
    *place = (struct zarr_place){
        .parent_fd = -1,
        .array_fd = -1,
        .version = 3,
        .replaces = replace || !*dataset, /* a store that is one array is as a file is */
    };
    int r = split_path(place, path, dataset);
    if (r)
        return file_path_error(error, -r, path, name);
    r = check_names(place, name, error);
    if (r)
        return r;
    place->parent_fd = open_folder(AT_FDCWD, place->folder);
    if (place->parent_fd < 0) {
        r = file_path_error(error, -place->parent_fd, place->folder, name);
        place->parent_fd = -1;
        return r;
    }
    r = walk(place, name, error);
    if (r)
        return r;
    r = make_folders(place);
    return r ? file_path_error(error, -r, path, name) : 0;
}

void zarr_place_deinit(struct zarr_place *place)
{
    if (place->is_made && tree_remove(place->parent_fd, place->temporary)) {
        const char *tag = strrchr(place->temporary, '.');
        hidden_give_up(tag + 1);
    }
    place->is_made = false;
    close_fd(&place->parent_fd);
    close_fd(&place->array_fd);
    free_ptr(&place->parts);
    free_ptr(&place->text);
    free_ptr(&place->folder);
}

int zarr_place_each_new(const struct zarr_place *place, zarr_place_function *function,
                        void *userdata)
{
    int fd = openat(place->parent_fd, place->temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? -errno : 0;
    for (unsigned i = place->n_there; r == 0; i++) {
        r = function(userdata, fd, i);
        if (r || i + 1 == place->n_parts)
            break;
        int inner = openat(fd, place->parts[i + 1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = inner < 0 ? -errno : 0;
        close_fd(&fd);
        fd = inner;
    }
    close_fd(&fd);
    return r;
}

/* Both change places; where the file system cannot do that, the old one goes aside first. */
static int exchange(int from_fd, const char *from, int to_fd, const char *to)
{
    char tag[HIDDEN_TAG_SIZE], aside[NAME_MAX + 1];
    if (renameat2(from_fd, from, to_fd, to, RENAME_EXCHANGE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    int r = hidden_tag(tag);
    if (r)
        return r;
    hidden_file_name(to, tag, aside);
    if (renameat(to_fd, to, to_fd, aside) < 0)
        return -errno;
    if (renameat(from_fd, from, to_fd, to) < 0) {
        r = -errno;
        (void)!renameat(to_fd, aside, to_fd, to);
        return r;
    }
    if (renameat(to_fd, aside, from_fd, from) < 0)
        hidden_give_up(tag);
    return 0;
}

/* The folder `from` of a new part takes its name in `to_fd`. 1: a group has it: go on inside. */
static int move_part(struct zarr_place *place, int from_fd, const char *from, int to_fd,
                     unsigned part, const char *name, struct gad_error *error)
{
    const char *to = place->parts[part];
    bool is_last = part + 1 == place->n_parts;
    enum zarr_kind kind;
    int version;
    /* A folder takes the name of an empty one, but of nothing else that is there. */
    if (renameat(from_fd, from, to_fd, to) == 0)
        return 0;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return file_path_error(error, errno, to, name);
    int r = kind_of(to_fd, to, name, &kind, &version, error);
    if (r == 0 && !is_last)
        return kind == ZARR_GROUP && version == place->version ? -1
                                                               : not_a_group(to, kind, name, error);
    if (r == 0)
        r = check_taken(place, to_fd, kind, name, error);
    if (r)
        return r;
    r = exchange(from_fd, from, to_fd, to);
    return r ? file_path_error(error, -r, to, name) : 0;
}

int zarr_place_commit(struct zarr_place *place, const char *name, unsigned *ret_n_new,
                      struct gad_error *error)
{
    _cleanup_fd_ int from_fd = fcntl(place->parent_fd, F_DUPFD_CLOEXEC, 3);
    _cleanup_fd_ int to_fd = fcntl(place->parent_fd, F_DUPFD_CLOEXEC, 3);
    const char *from = place->temporary;
    unsigned part = place->n_there;
    int r = from_fd < 0 || to_fd < 0 ? error_from_errno(error, errno, name, "output") : 0;
    while (r == 0 && (r = move_part(place, from_fd, from, to_fd, part, name, error)) < 0) {
        int inner_from = open_folder(from_fd, from),
            inner_to = open_folder(to_fd, place->parts[part]);
        r = inner_from < 0 || inner_to < 0
                ? file_path_error(error, inner_from < 0 ? -inner_from : -inner_to,
                                  place->parts[part], name)
                : 0;
        close_fd(&from_fd);
        close_fd(&to_fd);
        from_fd = inner_from;
        to_fd = inner_to;
        from = place->parts[++part];
    }
    if (r)
        return r;
    *ret_n_new = place->n_parts - part;
    /* What was replaced, or is left of new groups that others had made. */
    if (tree_remove(place->parent_fd, place->temporary))
        hidden_give_up(strrchr(place->temporary, '.') + 1);
    place->is_made = false;
    return 0;
}

bool zarr_place_meets(const struct zarr_place *place, const struct zarr_place *other)
{
    struct stat a, b;
    unsigned i = place->n_there, k = other->n_there;
    if (fstat(place->parent_fd, &a) || fstat(other->parent_fd, &b) || a.st_dev != b.st_dev ||
        a.st_ino != b.st_ino)
        return false;
    while (i < place->n_parts && k < other->n_parts)
        if (strcmp(place->parts[i++], other->parts[k++]) != 0)
            return false;
    return true;
}

int zarr_place_open(const struct zarr_place *place, unsigned part)
{
    int fd = open_folder(AT_FDCWD, place->folder);
    for (unsigned i = 0; fd >= 0 && i < part; i++) {
        int inner = open_folder(fd, place->parts[i]);
        close(fd);
        fd = inner;
    }
    return fd;
}
