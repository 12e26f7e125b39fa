/* Names of datasets: as specs have them, and those of a file as suggestions.
 *
 * Whoever misspells a dataset, or names a group, is told what there is. The walk is bounded in
 * depth and links, since it runs over a file that may have a million objects, or groups in a
 * circle. The nearest names by edit distance come first.
 *
 * Called by spec.c, and by hdf5.c when a dataset cannot be opened.
 */
#include "client/formats/hdf5/hdf5_names.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_DATASET_CHARS 4096

#define MAX_LINKS    500
#define MAX_GROUPS   64
#define MAX_FOUND    64
#define MAX_SHOWN    6
#define NAME_BYTES   128
#define DISTANCE_MAX 48 /* characters of a name that are compared */

struct found {
    char name[NAME_BYTES];
    unsigned distance;
};

struct walk {
    hid_t file;
    const char *wanted;
    unsigned n_links, n_groups, n_found;
    bool is_cut;                         /* there is more */
    char groups[MAX_GROUPS][NAME_BYTES]; /* to be walked, "" is the root */
    struct found found[MAX_FOUND];
};

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Edit distance without regard to case. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[DISTANCE_MAX + 1];
    size_t n_a = strnlen(a, DISTANCE_MAX), n_b = strnlen(b, DISTANCE_MAX);
    for (size_t i = 0; i <= n_b; i++)
        row[i] = (unsigned)i;
    for (size_t i = 1; i <= n_a; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t k = 1; k <= n_b; k++) {
            unsigned differs = strncasecmp(a + i - 1, b + k - 1, 1) != 0;
            unsigned next = min3(row[k] + 1, row[k - 1] + 1, diagonal + differs);
            diagonal = row[k];
            row[k] = next;
        }
    }
    return row[n_b];
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void add_found(struct walk *walk, const char *path)
{
    if (walk->n_found == MAX_FOUND) {
        walk->is_cut = true;
        return;
    }
    struct found found;
    snprintf(found.name, sizeof(found.name), "%.*s", NAME_BYTES - 1, path);
    found.distance = distance(last_part(walk->wanted), last_part(path));
    unsigned at = walk->n_found++;
    /* Only what is near is moved forward; the rest stays in the file's order. */
    unsigned rank = found.distance <= 3 ? found.distance : UINT32_MAX;
    found.distance = rank;
    for (; at > 0 && walk->found[at - 1].distance > rank; at--)
        walk->found[at] = walk->found[at - 1];
    walk->found[at] = found;
}

static void add_group(struct walk *walk, const char *path)
{
    if (walk->n_groups == MAX_GROUPS)
        walk->is_cut = true;
    else
        snprintf(walk->groups[walk->n_groups++], NAME_BYTES, "%.*s", NAME_BYTES - 1, path);
}

static void look_at(struct walk *walk, const char *path)
{
    _cleanup_hid_ hid_t object = H5Oopen(walk->file, path, H5P_DEFAULT);
    H5I_type_t type = object > 0 ? H5Iget_type(object) : H5I_BADID;
    if (type == H5I_DATASET)
        add_found(walk, path);
    else if (type == H5I_GROUP)
        add_group(walk, path);
}

static void walk_group(struct walk *walk, const char *path)
{
    H5G_info_t info;
    _cleanup_hid_ hid_t group = H5Gopen2(walk->file, *path ? path : "/", H5P_DEFAULT);
    if (group <= 0 || H5Gget_info(group, &info) < 0)
        return;
    for (hsize_t i = 0; i < info.nlinks; i++) {
        char name[NAME_BYTES], child[2 * NAME_BYTES];
        if (walk->n_links++ >= MAX_LINKS) {
            walk->is_cut = true;
            return;
        }
        ssize_t n = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name,
                                       sizeof(name), H5P_DEFAULT);
        if (n <= 0 || (size_t)n >= sizeof(name) || strlen(path) + (size_t)n + 1 >= NAME_BYTES ||
            strncmp(name, HDF5_HIDDEN_PREFIX, strlen(HDF5_HIDDEN_PREFIX)) == 0)
            continue;
        snprintf(child, sizeof(child), "%.*s/%s", NAME_BYTES - 1, path, name);
        look_at(walk, child);
    }
}

static void list_found(const struct walk *walk, char *buffer, size_t n_bytes)
{
    size_t used = 0;
    *buffer = '\0';
    for (unsigned i = 0; i < walk->n_found; i++) {
        const char *name = walk->found[i].name;
        bool fits = i < MAX_SHOWN && used + strlen(name) + 12 < n_bytes;
        int n = fits ? snprintf(buffer + used, n_bytes - used, "%s'%s'", i ? ", " : "", name)
                     : snprintf(buffer + used, n_bytes - used, "%s...", i ? ", " : "");
        used += (size_t)n;
        if (!fits || used >= n_bytes)
            return;
    }
    if (walk->is_cut && walk->n_found && used + 6 < n_bytes)
        snprintf(buffer + used, n_bytes - used, ", ...");
}

/* It is there, but made by a newer HDF5, or damaged. */
static int unreadable_error(const char *dataset, const char *reason, const char *name,
                            struct gad_error *error)
{
    return error_set(error, GAD_BAD_FORMAT, name, "HDF5 %d.%d.%d cannot open '%.100s': %.140s",
                     H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE, dataset, reason);
}

int hdf5_no_dataset_error(hid_t file, const char *dataset, const char *name,
                          struct gad_error *error)
{
    char list[112], reason[160];
    _cleanup_hid_ hid_t object = H5Oopen(file, dataset, H5P_DEFAULT);
    hdf5_reason(reason, sizeof(reason));
    if (object <= 0 && H5Oexists_by_name(file, dataset, H5P_DEFAULT) > 0)
        return unreadable_error(dataset, reason, name, error);
    bool is_group = object > 0 && H5Iget_type(object) == H5I_GROUP;
    struct walk *walk = calloc(1, sizeof(*walk));
    if (!walk)
        return error_from_errno(error, ENOMEM, name, dataset);
    walk->file = file;
    walk->wanted = dataset;
    add_group(walk, is_group ? dataset : "");
    for (unsigned i = 0; i < walk->n_groups; i++)
        walk_group(walk, walk->groups[i]);
    list_found(walk, list, sizeof(list));
    if (is_group)
        error_set(error, GAD_NOT_FOUND, name, "'%.80s' is a group%s%s", dataset,
                  *list ? "; it has " : " without datasets", list);
    else
        error_set(error, GAD_NOT_FOUND, name, "no dataset '%.80s'%s%s", dataset,
                  *list ? "; there are " : "; the file has none", list);
    error_expected(error, "%s", list);
    error_found(error, "'%.100s'", dataset);
    free(walk);
    return GAD_NOT_FOUND;
}

/* `rest` is "" or ":group/name". One leading slash, no empty components. NULL: no memory. */
char *hdf5_normalise(const char *rest)
{
    size_t n = strlen(rest);
    char *dataset = malloc(n + 2), *out = dataset;
    if (!dataset)
        return NULL;
    for (const char *at = n ? rest + 1 : rest; *at;) {
        size_t part = strcspn(at, "/");
        bool is_dot = part == 1 && at[0] == '.';
        if (part > 0 && !is_dot) {
            *out++ = '/';
            memcpy(out, at, part);
            out += part;
        }
        at += part;
        if (*at == '/')
            at++;
    }
    *out = '\0';
    return dataset;
}

/* `rest` is "" or ":/group/name". */
int hdf5_parse_rest(const char *rest, const char *whole, bool is_output, struct spec *spec,
                    struct gad_error *error)
{
    if (strlen(rest) > MAX_DATASET_CHARS)
        return error_set(error, GAD_BAD_ARGUMENT, whole, "the dataset's path is too long");
    spec->dataset = hdf5_normalise(rest);
    if (!spec->dataset)
        return error_from_errno(error, ENOMEM, whole, "spec");
    if (*spec->dataset)
        return 0;
    return error_set(error, GAD_BAD_ARGUMENT, whole,
                     "an HDF5 file needs the path of a dataset, as in %s:/name", spec->path);
}
