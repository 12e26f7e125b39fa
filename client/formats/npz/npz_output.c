/* New arrays in npz archives.
 *
 *     create   a place in a file without a name, the npy header there; the elements begin on a page
 *     write    by the daemon, in place
 *     commit   one pass over the elements for the CRC-32; then the archive appears (npz_target.c)
 *
 * What is to be packed, or is of a length that is known at its end, is written into a file of its
 * own in the same folder, without a name too, and deflated or copied from there at the commit:
 * blocks come in any order, and deflated data have but one.
 *
 * The outputs of one job that go to one archive are joined: they are written into one file, which
 * appears with the last commit, so that the archive has all of them or none.
 *
 * Called by format.c (create) and through the array (commit, discard, free, join).
 */
#include "client/formats/npz/npz_output.h"
#include "client/formats/files/file_array.h"
#include "client/formats/files/file_output.h"
#include "client/formats/files/file_source.h"
#include "client/formats/npy/npy_header.h"
#include "client/formats/npz/npz_crc.h"
#include "client/formats/npz/npz_target.h"
#include "client/formats/storage.h"
#include "proto/util.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

struct npz_output {
    struct npz_target *target;
    struct npz_new member;
    struct file_output *scratch; /* of one that is late */
    int level;
    bool is_open; /* its length is known at the commit */
    bool is_synced;
    char *spec; /* for errors */
};

/* At the beginning of a file that the member has, or of its place. */
static int write_header(const struct gad_array *array, uint64_t at)
{
    char header[NPY_DATA_OFFSET];
    const struct gad_array_info *info = &array->info;
    const struct array described = array_described(array);
    bool is_fortran = info->ndim > 1 && !array_is_c_contiguous(&described);
    npy_header_format((enum dtype)info->dtype, info->ndim, info->shape, is_fortran, header);
    return file_write(array->fd, header, sizeof(header), at);
}

static int commit(struct gad_array *array, struct gad_error *error)
{
    struct npz_output *output = array->format_state;
    struct npz_new *member = &output->member;
    int r = 0;
    if (output->is_open) {
        member->n_bytes = NPY_DATA_OFFSET + file_array_n_bytes(array);
        r = write_header(array, 0);
    }
    if (r == 0 && member->is_late && !member->is_ready)
        r = npz_target_pack(output->target, member, array->fd, output->level, output->spec, error);
    else if (r == 0 && !member->is_late)
        r = npz_crc_of(array->fd, member->data_offset, member->n_bytes, &member->crc);
    if (r)
        return r < 0 ? file_path_error(error, -r, array->info.path, output->spec) : r;
    member->is_ready = true;
    return npz_target_publish(output->target, output->spec, error);
}

static void discard(struct gad_array *array)
{
    struct npz_output *output = array->format_state;
    if (output->target)
        npz_target_remove(output->target, &output->member);
}

static void output_free(struct gad_array *array)
{
    struct npz_output *output = steal_ptr(array->format_state);
    if (output->target)
        npz_target_remove(output->target, &output->member);
    npz_target_unref(output->target);
    file_output_free(output->scratch);
    free(output->member.name);
    free(output->spec);
    free(output);
}

static bool is_same_target(const struct gad_array *array, const struct gad_array *other)
{
    const struct npz_output *a = array->format_state, *b = other->format_state;
    return npz_target_is_for(a->target, b->target) && strcmp(a->member.name, b->member.name) == 0;
}

/* Makes the array one of the target, with its header where its elements will be written. */
static int add(struct gad_array *array, struct npz_target *target, struct gad_error *error)
{
    struct npz_output *output = array->format_state;
    int r = npz_target_add(target, &output->member, output->spec, error);
    if (r)
        return r;
    int fd = output->scratch ? file_output_fd(output->scratch) : npz_target_fd(target);
    uint64_t at = output->scratch ? 0 : output->member.data_offset;
    array->offset_bytes = at + NPY_DATA_OFFSET;
    close_fd(&array->fd);
    array->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    r = array->fd < 0 ? -errno : output->is_open ? 0 : write_header(array, at);
    if (r == 0)
        return 0;
    npz_target_remove(target, &output->member);
    return file_path_error(error, -r, array->info.path, output->spec);
}

/* Of two that are made for one archive the later one moves, before anything is written. */
static int join(struct gad_array *array, struct gad_array *other, struct gad_error *error)
{
    struct npz_output *output = array->format_state, *first = other->format_state;
    if (output->target == first->target || !npz_target_is_for(output->target, first->target))
        return 0;
    npz_target_remove(output->target, &output->member);
    output->target = npz_target_unref(output->target);
    int r = add(array, first->target, error);
    if (r)
        return r;
    output->target = npz_target_ref(first->target);
    if (output->is_synced)
        npz_target_sync(output->target);
    return 0;
}

/* Archives have deflate, without chunks, and nothing else that numpy would read. */
static int set_storage(struct npz_output *output, const struct format_target *wanted,
                       struct gad_error *error)
{
    const struct storage *storage = wanted->storage;
    const struct codec_pipeline *pipeline = &storage->pipeline;
    int64_t usual[ARRAY_MAX_NDIM];
    output->is_synced = storage->sync;
    output->level = NPZ_STORED;
    output->member.is_late = output->is_open;
    if (!storage->has_chunks)
        return 0;
    storage_choose_chunks(wanted->dtype, wanted->ndim, wanted->shape, usual);
    size_t n_shape_bytes = (size_t)wanted->ndim * sizeof(int64_t);
    bool is_usual =
        storage->n_shard_levels == 0 && memcmp(usual, storage->chunk_shape, n_shape_bytes) == 0;
    if (is_usual && pipeline->n_steps == 0 && output->is_open)
        return 0;
    if (is_usual && pipeline->n_steps == 1 &&
        pipeline->steps[0].codec == codec_of_name("deflate")) {
        output->member.is_late = true;
        output->level = (int)pipeline->steps[0].values[0];
        return 0;
    }
    error_set(error, GAD_BAD_ARGUMENT, wanted->name,
              "arrays in npz archives are stored, or packed whole by gzip's deflate");
    error_expected(error, "no chunks, and compress none or gzip[:0-9] alone");
    error_found(error, "other chunks or ways to pack");
    return GAD_BAD_ARGUMENT;
}

/* The same directory has room for it, or says so now. */
static int make_scratch(struct npz_output *output, const struct format_target *wanted,
                        struct gad_error *error)
{
    int r = file_output_new(wanted->spec->path, wanted->name, &output->scratch, error);
    return r ? r
             : file_output_reserve(output->scratch, 0, output->member.n_bytes, wanted->name, error);
}

/* Continuation bytes where they belong; as Python demands of a member's name. */
static bool is_utf8(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        int n = *at < 0x80   ? 0
                : *at < 0xc2 ? -1
                : *at < 0xe0 ? 1
                : *at < 0xf0 ? 2
                : *at < 0xf5 ? 3
                             : -1;
        bool is_bad = n < 0 || (*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) ||
                      (*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] > 0x8f);
        for (int i = 1; i <= n && !is_bad; i++)
            is_bad = (at[i] & 0xc0) != 0x80;
        if (is_bad)
            return false;
        at += 1 + n;
    }
    return true;
}

/* An archive may be unpacked by programs that take names for paths. */
static bool is_path_outside(const char *name)
{
    for (const char *at = name; at; at = strchr(at, '/')) {
        at += *at == '/' && at != name;
        if (*at == '/' || *at == '\0' || strncmp(at, "../", 3) == 0 || strcmp(at, "..") == 0)
            return true;
    }
    return false;
}

static int set_name(struct npz_output *output, const struct format_target *wanted,
                    struct gad_error *error)
{
    const char *dataset = wanted->spec->dataset;
    size_t n = strlen(dataset);
    bool has_ending = n > 4 && strcmp(dataset + n - 4, ".npy") == 0;
    if (!is_utf8(dataset) || is_path_outside(dataset)) {
        error_set(error, GAD_BAD_ARGUMENT, wanted->name, "'%.160s' is no name of an array",
                  dataset);
        error_expected(error, "UTF-8, without a / at its ends and without ..");
        error_found(error, "'%.100s'", dataset);
        return GAD_BAD_ARGUMENT;
    }
    output->spec = strdup(wanted->name);
    if (output->spec &&
        asprintf(&output->member.name, "%s%s", dataset, has_ending ? "" : ".npy") >= 0)
        return 0;
    output->member.name = NULL;
    return error_from_errno(error, ENOMEM, wanted->name, "output");
}

static int add_state(struct gad_array *array, const struct format_target *wanted,
                     struct gad_error *error)
{
    struct npz_output *output = calloc(1, sizeof(*output));
    if (!output)
        return error_from_errno(error, ENOMEM, wanted->name, "output");
    array->format_state = output;
    array->maker_free = output_free;
    array->commit = commit;
    array->discard = discard;
    array->join = join;
    array->is_same_target = is_same_target;
    array->is_writable = true;
    output->member.replace = wanted->replace;
    output->is_open = array_is_open(array);
    int r = set_storage(output, wanted, error);
    return r ? r : set_name(output, wanted, error);
}

static int make(struct gad_array *array, const struct format_target *wanted,
                struct gad_error *error)
{
    bool is_open = wanted->ndim > 0 && wanted->shape[0] == GAD_UNKNOWN_LENGTH;
    const struct file_layout layout = {
        .dtype = wanted->dtype,
        .fortran_order = wanted->fortran_order && !is_open,
        .ndim = wanted->ndim,
        .shape = wanted->shape,
        .offset_bytes = NPY_DATA_OFFSET,
    };
    int r = file_array_describe(array, &layout, wanted->name, error);
    if (r == 0)
        r = add_state(array, wanted, error);
    if (r)
        return r;
    struct npz_output *output = array->format_state;
    output->member.n_bytes = NPY_DATA_OFFSET + (output->is_open ? 0 : file_array_n_bytes(array));
    if (output->is_open)
        array->is_write_only = array_use_provider(array);
    r = npz_target_new(wanted->spec->path, wanted->name, &output->target, error);
    if (r == 0 && output->is_synced)
        npz_target_sync(output->target);
    if (r == 0 && output->member.is_late)
        r = make_scratch(output, wanted, error);
    return r ? r : add(array, output->target, error);
}

int npz_create(struct gad_client *client, const struct format_target *target,
               struct gad_array **ret_array, struct gad_error *error)
{
    return format_make(client, target, make, ret_array, error);
}
