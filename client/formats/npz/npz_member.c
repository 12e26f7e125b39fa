/* Members of npz archives by name, and their headers.
 *
 * numpy.savez() writes an array `x` as a member `x.npy`; a spec says either. A member whose name is
 * just what the spec says wins, as in numpy.load(). Directories and files of other kinds may stand
 * beside the arrays; where a name is left out only the arrays count.
 *
 * Called by npz.c, npz_list.c and npz_output.c.
 */
#include "client/formats/npz/npz_member.h"
#include "client/formats/files/file_source.h"
#include "client/formats/near_names.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_NAME_CHARS 4096

static int read_archive(void *state, void *buffer, size_t n_bytes, uint64_t offset_bytes)
{
    const struct npz_archive *archive = state;
    size_t n;
    int r = file_read(archive->fd, buffer, n_bytes, offset_bytes, &n);
    return r < 0 ? r : n == n_bytes ? 0 : -ENODATA; /* it has become shorter */
}

/* What zip_read.c returns: an errno is of the file. */
static int as_status(const struct npz_archive *archive, int r, struct gad_error *error)
{
    if (r == -ENODATA)
        return error_set(error, GAD_SHORT_READ, archive->name,
                         "'%.200s' has become shorter meanwhile", archive->path);
    return r < 0 ? file_path_error(error, -r, archive->path, archive->name) : r;
}

static int read_directory(struct npz_archive *archive, struct gad_error *error)
{
    archive->source = (struct zip_source){
        .size_bytes = (uint64_t)archive->st.st_size,
        .read = read_archive,
        .state = archive,
    };
    int r = zip_directory_read(&archive->source, archive->name, &archive->directory, error);
    r = as_status(archive, r, error);
    if (r)
        npz_archive_close(archive);
    return r;
}

int npz_archive_open(const char *path, bool for_writing, const char *name,
                     struct npz_archive *ret_archive, struct gad_error *error)
{
    *ret_archive = (struct npz_archive){.path = path, .name = name, .fd = -1};
    int r = file_source_open(path, for_writing, name, &ret_archive->fd, &ret_archive->st, error);
    return r ? r : read_directory(ret_archive, error);
}

int npz_archive_read(int fd_take, const char *path, const char *name,
                     struct npz_archive *ret_archive, struct gad_error *error)
{
    *ret_archive = (struct npz_archive){.path = path, .name = name, .fd = fd_take};
    if (fstat(fd_take, &ret_archive->st) == 0)
        return read_directory(ret_archive, error);
    int r = file_path_error(error, errno, path, name);
    npz_archive_close(ret_archive);
    return r;
}

void npz_archive_close(struct npz_archive *archive)
{
    zip_directory_deinit(&archive->directory);
    close_fd(&archive->fd);
}

/* Names --------------------------------------------------------------------------------------- */

static bool is_array_name(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".npy") == 0;
}

static const struct zip_member *find_only(const struct zip_directory *directory)
{
    const struct zip_member *found = NULL;
    for (size_t i = 0; i < directory->n_members; i++) {
        if (!is_array_name(directory->members[i].name))
            continue;
        if (found)
            return NULL;
        found = &directory->members[i];
    }
    return found;
}

/* What a name in a spec stands for: a member of that name, else of that name and ".npy", as in
 * numpy.load(); "": the only array. NULL: not there, and nothing else is said. */
static const struct zip_member *npz_member_find(const struct zip_directory *directory,
                                                const char *dataset)
{
    const struct zip_member *found = NULL;
    size_t n = strlen(dataset);
    if (n == 0)
        return find_only(directory);
    for (size_t i = 0; i < directory->n_members; i++) {
        const struct zip_member *member = &directory->members[i];
        if (strcmp(member->name, dataset) == 0)
            return member;
        if (!found && is_array_name(member->name) && strlen(member->name) == n + 4 &&
            strncmp(member->name, dataset, n) == 0)
            found = member;
    }
    return found;
}

static bool is_there_twice(const struct zip_directory *directory, const struct zip_member *member)
{
    for (size_t i = 0; i < directory->n_members; i++)
        if (&directory->members[i] != member &&
            strcmp(directory->members[i].name, member->name) == 0)
            return true;
    return false;
}

int npz_no_member(const struct npz_archive *archive, const char *dataset, struct gad_error *error)
{
    char list[NEAR_TEXT_BYTES];
    struct near_names *names = calloc(1, sizeof(*names));
    if (!names)
        return error_from_errno(error, ENOMEM, archive->name, "names");
    names->wanted = dataset;
    for (size_t i = 0; i < archive->directory.n_members; i++) {
        const char *name = archive->directory.members[i].name;
        char key[NEAR_NAME_BYTES];
        if (!is_array_name(name))
            continue;
        snprintf(key, sizeof(key), "%.*s", (int)(strlen(name) - 4), name);
        near_names_add(names, key);
    }
    int r = GAD_BAD_ARGUMENT;
    if (*dataset || names->n == 0) {
        r = near_names_error(names, "array", archive->name, error);
    } else {
        error_set(error, GAD_BAD_ARGUMENT, archive->name,
                  "'%.120s' has several arrays: which one, as in %.60s:NAME", archive->path,
                  archive->path);
        error_expected(error, "%s", near_names_text(names, list, sizeof(list)));
        error_found(error, "no name");
    }
    free(names);
    return r;
}

int npz_member_get(const struct npz_archive *archive, const char *dataset,
                   const struct zip_member **ret_member, struct gad_error *error)
{
    const struct zip_member *member = npz_member_find(&archive->directory, dataset);
    if (!member)
        return npz_no_member(archive, dataset, error);
    if (is_there_twice(&archive->directory, member))
        return error_set(error, GAD_BAD_FORMAT, archive->name,
                         "'%.120s' has two members '%.120s': which one is meant cannot be said",
                         archive->path, member->name);
    *ret_member = member;
    return 0;
}

char *npz_normalise(const char *rest)
{
    return strdup(*rest == ':' ? rest + 1 : "");
}

int npz_parse_rest(const char *rest, const char *whole, bool is_output, struct spec *spec,
                   struct gad_error *error)
{
    if (strlen(rest) > MAX_NAME_CHARS)
        return error_set(error, GAD_BAD_ARGUMENT, whole, "the member's name is too long");
    spec->dataset = npz_normalise(rest);
    if (!spec->dataset)
        return error_from_errno(error, ENOMEM, whole, "spec");
    if (*spec->dataset || !is_output)
        return 0;
    return error_set(error, GAD_BAD_ARGUMENT, whole,
                     "an array in an npz archive needs a name, as in %s:x", spec->path);
}

bool npz_has_member(const char *path, const char *dataset)
{
    struct npz_archive archive;
    if (*dataset == '\0' || npz_archive_open(path, false, path, &archive, NULL))
        return false;
    bool is_there = npz_member_find(&archive.directory, dataset);
    npz_archive_close(&archive);
    return is_there;
}

/* Headers ------------------------------------------------------------------------------------- */

/* n_bytes of what the member unpacks to; fewer where it ends. */
static int read_data(const struct npz_archive *archive, const struct zip_member *member,
                     const struct npz_elements *elements, void *buffer, size_t n_bytes,
                     size_t *ret_n_bytes, struct gad_error *error)
{
    size_t n = (size_t)min_u64(n_bytes, member->size_bytes);
    int r = elements->stream
                ? npz_stream_read(elements->stream, buffer, n, 0)
                : -read_archive((void *)(uintptr_t)archive, buffer, n, elements->data_offset);
    *ret_n_bytes = n;
    if (r == EBADMSG)
        return error_set(error, GAD_BAD_FORMAT, archive->name,
                         "the member '%.120s' is not usable: %s", member->name,
                         npz_stream_fault(elements->stream));
    return as_status(archive, -r, error);
}

static int read_header(const struct npz_archive *archive, const struct zip_member *member,
                       char *ret_what, struct npz_elements *elements, struct gad_error *error)
{
    uint8_t preamble[NPY_PREAMBLE_BYTES];
    size_t n_bytes, n_header_bytes;
    int r = read_data(archive, member, elements, preamble, sizeof(preamble), &n_bytes, error);
    if (r == 0)
        r = npy_header_size(preamble, n_bytes, archive->name, &n_header_bytes, error);
    if (r)
        return r;
    _cleanup_free_ void *header = malloc(n_header_bytes);
    if (!header)
        return error_from_errno(error, ENOMEM, archive->name, "npy header");
    r = read_data(archive, member, elements, header, n_header_bytes, &n_bytes, error);
    if (r)
        return r;
    return ret_what
               ? npy_header_look(header, n_bytes, archive->name, &elements->header, ret_what, error)
               : npy_header_parse(header, n_bytes, archive->name, &elements->header, error);
}

static int open_stream(const struct npz_archive *archive, const struct zip_member *member,
                       struct npz_elements *elements, struct gad_error *error)
{
    const struct npz_packed packed = {
        .offset_bytes = elements->data_offset,
        .packed_bytes = member->packed_bytes,
        .size_bytes = member->size_bytes,
        .crc = member->crc,
    };
    int fd = fcntl(archive->fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return file_path_error(error, errno, archive->path, archive->name);
    elements->stream = npz_stream_new(fd, &packed);
    return elements->stream ? 0 : error_from_errno(error, ENOMEM, archive->name, "unpacking");
}

/* The dtype is known, unless it is one that is only looked at. */
static int check_size(const struct npz_archive *archive, const struct zip_member *member,
                      const struct npy_header *header, struct gad_error *error)
{
    struct array array = {.dtype = header->dtype, .ndim = header->ndim};
    memcpy(array.shape, header->shape, sizeof(array.shape));
    uint64_t needed = header->data_offset_bytes + (uint64_t)array_n_bytes(&array);
    if (needed <= member->size_bytes)
        return 0;
    error_set(error, GAD_SHORT_READ, archive->name,
              "the member '%.120s' holds %" PRIu64 " bytes, dtype and shape need %" PRIu64,
              member->name, member->size_bytes, needed);
    error_expected(error, "%" PRIu64 " bytes", needed);
    error_found(error, "%" PRIu64 " bytes", member->size_bytes);
    return GAD_SHORT_READ;
}

int npz_member_elements(const struct npz_archive *archive, const struct zip_member *member,
                        char *ret_what, struct npz_elements *ret_elements, struct gad_error *error)
{
    struct npz_elements elements = {.stream = NULL};
    int r =
        zip_member_locate(&archive->source, member, archive->name, &elements.data_offset, error);
    r = as_status(archive, r, error);
    if (r == 0 && member->method == ZIP_DEFLATED)
        r = open_stream(archive, member, &elements, error);
    if (r == 0)
        r = read_header(archive, member, ret_what, &elements, error);
    if (r == 0 && !(ret_what && *ret_what))
        r = check_size(archive, member, &elements.header, error);
    if (r) {
        npz_stream_free(elements.stream);
        return r;
    }
    *ret_elements = elements;
    return 0;
}
