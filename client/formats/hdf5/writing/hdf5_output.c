/* Datasets as outputs.
 *
 *     create   the dataset under a hidden root link, contiguous, space allocated and never filled;
 *              the file closed, its space reserved; the offset of the elements is known
 *     write    by the daemon (or the file provider), with HDF5 out of the way
 *     commit   the file opened again and the link moved to its name; where another job has made a
 *              file of a new one's name meanwhile, the dataset is copied into that before
 *     discard  the hidden link deleted; a new file is simply never named
 *
 * Deleting gives the place of the elements to whatever is made next in the file, so it waits until
 * nobody else can write there by the descriptor that was handed over (file_claim.h). That is why
 * each output has an open file of its own. What cannot be deleted in time is given up, to be swept
 * with the next output. The commit gives the claim up: then the job is over, and the place belongs
 * to whoever replaces or deletes the dataset.
 *
 * A dataset in chunks is made in the same way, without space: whole chunks come from a sink
 * (chunk_sink.h) and are written through HDF5 (hdf5_chunk_writer.h), by this process alone.
 *
 * Between create and commit the file is not locked: other programs may read it, and write to it.
 * Whoever finds it locked waits a little, since others like us hold it for a moment only; the
 * commit waits longest, since the work is done by then.
 *
 * Called by format.c (create) and through the array (commit, discard, free).
 */
#include "client/clock.h"
#include "client/formats/chunked/chunk_sink.h"
#include "client/formats/files/file_array.h"
#include "client/formats/files/file_claim.h"
#include "client/formats/files/file_output.h"
#include "client/formats/hdf5/writing/hdf5_dims.h"
#include "client/formats/hdf5/writing/hdf5_driver.h"
#include "client/formats/hdf5/writing/hdf5_output.h"
#include "client/formats/hdf5/writing/hdf5_chunk_writer.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/hdf5_filters.h"
#include "client/formats/hdf5/writing/hdf5_target.h"
#include "client/formats/hdf5/hdf5_tree.h"
#include "client/formats/hdf5/hdf5_type.h"
#include "client/hidden.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

#define CREATE_WAIT_MS  5000
#define COMMIT_WAIT_MS  5000
#define DISCARD_WAIT_MS 1000
#define RETRY_MS        50

struct hdf5_output {
    struct hdf5_target *target, *was_target; /* NULL: the only one */
    char *dataset;
    char hidden[HDF5_HIDDEN_SIZE], tag[HIDDEN_TAG_SIZE]; /* its name until then, and its sign */
    bool replace;
    bool is_made;            /* the hidden link is, or may be there */
    bool is_unreserved;      /* space could not be reserved: flush at the commit */
    bool is_open;            /* its length is known at the commit */
    struct chunk_sink *sink; /* of one in chunks; else NULL */
    struct hdf5_chunk_writer *writer;
    struct codec_pipeline pipeline; /* as HDF5 has noted it */
};

static hid_t make_space(const struct format_target *wanted)
{
    hsize_t dims[ARRAY_MAX_NDIM];
    hsize_t most[ARRAY_MAX_NDIM];
    for (int i = 0; i < wanted->ndim; i++) {
        bool is_open = wanted->shape[i] == GAD_UNKNOWN_LENGTH;
        bool is_unlimited = is_open || (wanted->limits && wanted->limits->is_unlimited[i]);
        dims[i] = is_open ? 0 : (hsize_t)wanted->shape[i];
        most[i] = is_unlimited ? H5S_UNLIMITED : dims[i];
    }
    return wanted->ndim ? H5Screate_simple(wanted->ndim, dims, most) : H5Screate(H5S_SCALAR);
}

/* Contiguous, allocated at once, never filled: the offset is known and nothing is written. */
static hid_t make_properties(const struct format_target *wanted)
{
    hid_t dcpl = hdf5_untimed(H5P_DATASET_CREATE);
    if (dcpl > 0 && wanted->storage->has_chunks) {
        if (!hdf5_chunk_properties(dcpl, wanted->ndim, wanted->storage))
            hdf5_close(&dcpl);
        return dcpl;
    }
    if (dcpl > 0 && (H5Pset_layout(dcpl, H5D_CONTIGUOUS) < 0 ||
                     H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_EARLY) < 0 ||
                     H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER) < 0))
        hdf5_close(&dcpl);
    return dcpl;
}

static int make_dataset(hid_t file, struct hdf5_output *output, const struct format_target *wanted,
                        uint64_t n_bytes, uint64_t *ret_offset_bytes, struct gad_error *error)
{
    char reason[160] = "";
    _cleanup_hid_ hid_t space = make_space(wanted);
    _cleanup_hid_ hid_t type = hdf5_type_make(wanted->dtype);
    unsigned plugins = hdf5_plugins_stop();
    _cleanup_hid_ hid_t dcpl = make_properties(wanted);
    _cleanup_hid_ hid_t dataset = H5I_INVALID_HID;
    haddr_t offset = 0;
    if (space > 0 && type > 0 && dcpl > 0)
        dataset = H5Dcreate2(file, output->hidden, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    if (dataset <= 0) /* before HDF5 is called again, which forgets it */
        hdf5_reason(reason, sizeof(reason));
    hdf5_plugins_resume(plugins);
    if (dataset > 0 && wanted->storage->has_chunks) {
        _cleanup_hid_ hid_t made = H5Dget_create_plist(dataset);
        if (made <= 0 || !hdf5_filters_pipeline(made, &output->pipeline))
            hdf5_close(&dataset);
    } else if (dataset > 0 && n_bytes > 0)
        offset = H5Dget_offset(dataset);
    if (dataset > 0 && offset != HADDR_UNDEF && hdf5_tree_sign(dataset, output->tag)) {
        *ret_offset_bytes = offset;
        return 0;
    }
    if (!*reason)
        hdf5_reason(reason, sizeof(reason));
    return error_set(error, GAD_IO_ERROR, wanted->name, "HDF5 cannot make '%.120s': %.160s",
                     output->dataset, reason);
}

static int close_file(hid_t *file, const char *name, struct gad_error *error)
{
    char reason[160];
    herr_t r = hdf5_driver_close(*file);
    *file = H5I_INVALID_HID;
    if (r >= 0)
        return 0;
    hdf5_reason(reason, sizeof(reason));
    return error_set(error, hdf5_driver_failure(), name, "HDF5 cannot write the file: %.200s",
                     reason);
}

static int add_dataset(struct hdf5_output *output, const struct format_target *wanted,
                       uint64_t n_bytes, uint64_t *ret_offset_bytes, struct gad_error *error)
{
    HDF5_SCOPE(scope);
    _cleanup_hid_ hid_t file = H5I_INVALID_HID;
    const struct stat *st = hdf5_target_stat(output->target);
    int r = hdf5_file_open(hdf5_target_path(output->target), st, true, wanted->spec->path,
                           wanted->name, &file, error);
    if (r == 0)
        r = hdf5_tree_check(file, st, output->dataset, output->replace, wanted->name, error);
    if (r)
        return r;
    hdf5_tree_sweep(file);
    hdf5_tree_free_name(file, output->hidden);
    output->is_made = true; /* or half made: discard deletes what there is */
    r = make_dataset(file, output, wanted, n_bytes, ret_offset_bytes, error);
    return r ? r : close_file(&file, wanted->name, error);
}

/* So far it ends where its last chunk begins. */
static int set_length(hid_t file, const struct hdf5_output *output, const struct gad_array *array,
                      struct gad_error *error)
{
    char reason[160];
    hsize_t dims[ARRAY_MAX_NDIM];
    _cleanup_hid_ hid_t dataset = H5Dopen2(file, output->hidden, H5P_DEFAULT);
    for (int i = 0; i < array->info.ndim; i++)
        dims[i] = (hsize_t)array->info.shape[i];
    if (dataset > 0 && H5Dset_extent(dataset, dims) >= 0)
        return 0;
    hdf5_reason(reason, sizeof(reason));
    return error_set(error, GAD_IO_ERROR, array->info.path,
                     "HDF5 cannot make '%.120s' as long as it is: %.160s", output->dataset, reason);
}

static int commit_once(struct hdf5_output *output, const struct gad_array *array,
                       struct gad_error *error)
{
    const char *shown = array->info.path;
    HDF5_SCOPE(scope);
    _cleanup_hid_ hid_t file = H5I_INVALID_HID;
    const struct stat *st = hdf5_target_stat(output->target);
    int r = hdf5_file_open(hdf5_target_path(output->target), st, true, shown, shown, &file, error);
    if (r == 0 && output->is_open)
        r = set_length(file, output, array, error);
    if (r == 0)
        r = hdf5_dims_write(file, output->hidden, output->dataset, array, shown, error);
    if (r == 0)
        r = hdf5_tree_move(file, st, output->hidden, output->tag, output->dataset, output->replace,
                           shown, error);
    if (r == 0)
        r = close_file(&file, shown, error);
    return r;
}

/* Chunks as they are stored; under a hidden name there, too, with its sign. */
static int copy_once(struct hdf5_output *output, const struct hdf5_target *from_target,
                     const char *from_hidden, const struct gad_array *array,
                     struct gad_error *error)
{
    char reason[160];
    const char *shown = array->info.path;
    HDF5_SCOPE(scope);
    _cleanup_hid_ hid_t from = H5I_INVALID_HID, to = H5I_INVALID_HID;
    const struct stat *st = hdf5_target_stat(output->target);
    int r = hdf5_file_open(hdf5_target_path(from_target), hdf5_target_stat(from_target), true,
                           shown, shown, &from, error);
    if (r == 0)
        r = hdf5_file_open(hdf5_target_path(output->target), st, true, shown, shown, &to, error);
    if (r == 0)
        r = hdf5_tree_check(to, st, output->dataset, output->replace, shown, error);
    if (r)
        return r;
    hdf5_tree_sweep(to);
    hdf5_tree_free_name(to, output->hidden);
    if (H5Ocopy(from, from_hidden, to, output->hidden, H5P_DEFAULT, H5P_DEFAULT) >= 0)
        return close_file(&to, shown, error);
    hdf5_reason(reason, sizeof(reason));
    return error_set(error, GAD_IO_ERROR, shown, "HDF5 cannot copy '%.120s' into it: %.160s",
                     output->dataset, reason);
}

static int move_to_other(struct hdf5_output *output, const struct gad_array *array,
                         struct gad_error *error)
{
    char hidden[HDF5_HIDDEN_SIZE];
    struct hdf5_target *other, *from = output->target;
    int r = hdf5_target_other(from, array->info.path, &other, error);
    if (r || !other)
        return r;
    output->was_target = from; /* of the writer */
    memcpy(hidden, output->hidden, sizeof(hidden));
    output->target = other; /* where what is there is discarded, too */
    r = copy_once(output, from, hidden, array, error);
    for (int ms = 0; r == GAD_BUSY && ms < COMMIT_WAIT_MS; ms += RETRY_MS) {
        clock_sleep_ms(RETRY_MS);
        r = copy_once(output, from, hidden, array, error);
    }
    return r;
}

static int delete_once(struct hdf5_output *output, struct gad_error *error)
{
    HDF5_SCOPE(scope);
    _cleanup_hid_ hid_t file = H5I_INVALID_HID;
    int r = hdf5_file_open(hdf5_target_path(output->target), hdf5_target_stat(output->target), true,
                           output->dataset, NULL, &file, error);
    if (r == 0)
        r = hdf5_tree_delete(file, output->hidden, output->tag, error);
    return r ? r : close_file(&file, output->dataset, error);
}

/* All chunks are in the file. */
static int finish_chunks(struct hdf5_output *output, const struct gad_array *array,
                         struct gad_error *error)
{
    char reason[160] = "";
    const char *shown = array->info.path;
    int r = chunk_sink_complete(output->sink, array, error);
    if (r)
        return r;
    r = hdf5_chunk_writer_flush(output->writer, reason, sizeof(reason));
    if (r == 0)
        return 0;
    return error_set(error,
                     r == ENOSPC  ? GAD_NO_SPACE
                     : r == EBUSY ? GAD_BUSY
                                  : GAD_IO_ERROR,
                     shown, "chunks of '%.100s' cannot be written: %.160s", output->dataset,
                     reason);
}

static int commit(struct gad_array *array, struct gad_error *error)
{
    struct hdf5_output *output = array->format_state;
    if (output->sink) {
        int chunks = finish_chunks(output, array, error);
        if (chunks)
            return chunks;
    }
    if (output->is_unreserved && fsync(array->fd) < 0)
        return error_from_errno(error, errno, array->info.path, "writing");
    int r = move_to_other(output, array, error);
    if (r)
        return r;
    r = commit_once(output, array, error);
    for (int ms = 0; r == GAD_BUSY && ms < COMMIT_WAIT_MS; ms += RETRY_MS) {
        clock_sleep_ms(RETRY_MS);
        r = commit_once(output, array, error);
    }
    if (r)
        return r;
    output->is_made = false; /* there is no hidden link any more */
    if (!output->sink)
        file_claim_release(array->fd, array->offset_bytes, file_array_n_bytes(array));
    return hdf5_target_commit(output->target, array->info.path, error);
}

static void discard(struct gad_array *array)
{
    struct hdf5_output *output = array->format_state;
    struct gad_error error;
    if (!output->is_made || hdf5_target_is_temporary(output->target))
        return;
    close_fd(&array->fd); /* the claim is that of others then, if there are any */
    int r = delete_once(output, &error);
    for (int ms = 0; r == GAD_BUSY && ms < DISCARD_WAIT_MS; ms += RETRY_MS) {
        clock_sleep_ms(RETRY_MS);
        r = delete_once(output, &error);
    }
    if (r)
        hidden_give_up(output->tag);
}

static void format_free(struct gad_array *array)
{
    struct hdf5_output *output = steal_ptr(array->format_state);
    chunk_sink_free(output->sink);
    hdf5_chunk_writer_free(output->writer);
    hdf5_target_unref(output->target);
    hdf5_target_unref(output->was_target);
    free(output->dataset);
    free(output);
}

/* `above` is `path`, or one of the groups on the way to it. */
static bool is_on_the_way(const char *above, const char *path)
{
    size_t n = strlen(above);
    return strncmp(above, path, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool have_one_file(const struct hdf5_output *a, const struct hdf5_output *b)
{
    const struct stat *st_a = hdf5_target_stat(a->target), *st_b = hdf5_target_stat(b->target);
    return st_a->st_dev == st_b->st_dev && st_a->st_ino == st_b->st_ino;
}

static int join(struct gad_array *array, struct gad_array *other, struct gad_error *error)
{
    struct hdf5_output *a = array->format_state, *b = other->format_state;
    if (!a->sink || !b->sink || !have_one_file(a, b))
        return 0;
    return chunk_sink_join(a->sink, b->sink, array->info.path, error);
}

static bool is_same_target(const struct gad_array *array, const struct gad_array *other)
{
    const struct hdf5_output *a = array->format_state, *b = other->format_state;
    return have_one_file(a, b) &&
           (is_on_the_way(a->dataset, b->dataset) || is_on_the_way(b->dataset, a->dataset));
}

static int add_state(struct gad_array *array, const struct format_target *wanted,
                     struct hdf5_output **ret_output, struct gad_error *error)
{
    struct hdf5_output *output = calloc(1, sizeof(*output));
    if (!output)
        return error_from_errno(error, ENOMEM, wanted->name, "output");
    array->format_state = output;
    array->maker_free = format_free;
    array->commit = commit;
    array->discard = discard;
    array->is_same_target = is_same_target;
    array->join = join;
    array->is_writable = true;
    output->replace = wanted->replace;
    output->dataset = strdup(wanted->spec->dataset);
    if (!output->dataset)
        return error_from_errno(error, ENOMEM, wanted->name, "output");
    int r = hidden_tag(output->tag);
    if (r)
        return error_from_errno(error, -r, wanted->name, "output");
    *ret_output = output;
    return 0;
}

/* busy: the file is locked, or HDF5 gave a place to which somebody still writes. The dataset that
 * was made keeps that place until its turn comes. */
static int make_place_once(struct hdf5_output *output, int fd, const struct format_target *wanted,
                           uint64_t n_bytes, uint64_t *ret_offset_bytes, struct gad_error *error)
{
    int r = output->is_made ? 0 : add_dataset(output, wanted, n_bytes, ret_offset_bytes, error);
    if (r || wanted->storage->has_chunks)
        return r;
    return file_claim(fd, *ret_offset_bytes, n_bytes, wanted->spec->path, wanted->name, error);
}

static int make_place(struct hdf5_output *output, int fd, const struct format_target *wanted,
                      uint64_t n_bytes, uint64_t *ret_offset_bytes, struct gad_error *error)
{
    int r = make_place_once(output, fd, wanted, n_bytes, ret_offset_bytes, error);
    for (int ms = 0; r == GAD_BUSY && ms < CREATE_WAIT_MS; ms += RETRY_MS) {
        clock_sleep_ms(RETRY_MS);
        r = make_place_once(output, fd, wanted, n_bytes, ret_offset_bytes, error);
    }
    return r;
}

/* What comes in goes out in chunks. */
static int use_sink(struct gad_array *array, struct hdf5_output *output,
                    const struct format_target *wanted, struct gad_error *error)
{
    struct chunk_sink_format format = {
        .chunk_shape = wanted->storage->chunk_shape,
        .pipeline = &output->pipeline,
        .parts = PARTS_OF_ALL,
        .store = hdf5_chunk_writer_store,
        .dataset = wanted->spec->dataset,
    };
    output->is_open = array_is_open(array);
    output->writer =
        hdf5_chunk_writer_new(output->target, output->hidden, array->info.path, wanted->ndim);
    if (!output->writer)
        return error_from_errno(error, ENOMEM, wanted->name, "output");
    format.state = output->writer;
    return chunk_sink_serve(array, &format, wanted->name, &output->sink, error);
}

/* What numcodecs has and HDF5 has not. */
static int check_filters(const struct format_target *wanted, struct gad_error *error)
{
    const struct codec_pipeline *pipeline = &wanted->storage->pipeline;
    for (unsigned i = 0; i < pipeline->n_steps; i++) {
        const char *codec = pipeline->steps[i].codec->name;
        if (pipeline->steps[i].codec->hdf5_id)
            continue;
        error_set(error, GAD_BAD_ARGUMENT, wanted->name, "HDF5 has no filter '%s'", codec);
        error_expected(error,
                       "gzip, zstd, bz2, lzf, lz4, blosc, szip or bitshuffle; or a Zarr store");
        error_found(error, "%s", codec);
        return GAD_BAD_ARGUMENT;
    }
    return 0;
}

static int make_chunked(struct gad_array *array, struct hdf5_output *output,
                        const struct format_target *wanted, struct gad_error *error)
{
    uint64_t nowhere;
    int r = make_place(output, array->fd, wanted, 0, &nowhere, error);
    return r ? r : use_sink(array, output, wanted, error);
}

static int make_contiguous(struct gad_array *array, struct hdf5_output *output,
                           const struct format_target *wanted, struct file_layout *layout,
                           struct gad_error *error)
{
    uint64_t n_bytes = file_array_n_bytes(array);
    bool is_reserved = true;
    int r = file_check_room(array->fd, n_bytes, wanted->spec->path, wanted->name, error);
    if (r == 0)
        r = make_place(output, array->fd, wanted, n_bytes, &layout->offset_bytes, error);
    if (r == 0)
        r = file_array_describe(array, layout, wanted->name, error);
    if (r == 0)
        r = file_reserve(array->fd, layout->offset_bytes, n_bytes, wanted->spec->path, wanted->name,
                         &is_reserved, error);
    output->is_unreserved = !is_reserved;
    return r;
}

static int make(struct gad_array *array, const struct format_target *wanted,
                struct gad_error *error)
{
    struct hdf5_output *output = NULL;
    struct file_layout layout = {
        .dtype = wanted->dtype,
        .ndim = wanted->ndim,
        .shape = wanted->shape,
    };
    int r = file_array_describe(array, &layout, wanted->name, error);
    if (r == 0)
        r = check_filters(wanted, error);
    if (r == 0)
        r = add_state(array, wanted, &output, error);
    if (r == 0)
        r = hdf5_target_get(wanted->spec->path, wanted->name, &output->target, &array->fd, error);
    if (r)
        return r;
    if (wanted->storage->sync)
        hdf5_target_sync(output->target);
    return wanted->storage->has_chunks ? make_chunked(array, output, wanted, error)
                                       : make_contiguous(array, output, wanted, &layout, error);
}

int hdf5_create(struct gad_client *client, const struct format_target *target,
                struct gad_array **ret_array, struct gad_error *error)
{
    return format_make(client, target, make, ret_array, error);
}
