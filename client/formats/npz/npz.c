/* npz archives: numpy.savez() and numpy.savez_compressed(), one array a member.
 *
 *     stored      file       the elements lie in place: descriptor and offset
 *     deflated    provider   unpacked in the client as blocks are asked for (npz_stream.c)
 *
 * Both are the same array with the same strides, in the file or in what is unpacked, so that
 * selections, Fortran order and the other byte order cost nothing of their own.
 *
 * The CRC-32 of a deflated member is compared when its last byte is read, of a stored one after a
 * job that read all of it (npz_crc.c).
 *
 * Called by format.c.
 */
#include "client/formats/chunked/packed_chunks.h"
#include "client/formats/files/file_array.h"
#include "client/formats/files/file_provider.h"
#include "client/formats/format_impl.h"
#include "client/formats/npz/npz_crc.h"
#include "client/formats/npz/npz_in_place.h"
#include "client/formats/npz/npz_member.h"
#include "client/formats/npz/npz_output.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define PART_BYTES (UINT64_C(1) << 20) /* of a stream that is decoded elsewhere */

static int fill(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    const struct gad_array *array = state;
    const struct file_bytes bytes = {.read = npz_stream_read, .state = array->format_state};
    bool has_turn = npz_stream_begin(array->format_state);
    int r = file_bytes_fill(array, &bytes, start, count, ret_block);
    if (has_turn)
        npz_stream_end(array->format_state);
    return r;
}

static void explain(void *state, struct gad_error *error)
{
    const struct gad_array *array = state;
    const char *fault = npz_stream_fault(array->format_state);
    char argument[sizeof(error->argument)];
    if (!fault)
        return;
    memcpy(argument, error->argument, sizeof(argument)); /* error_set() begins with an empty one */
    error_set(error, GAD_PROVIDER_FAILED, argument, "%.200s: %s, before byte %" PRIu64,
              array->spec ? array->spec : array->info.path, fault,
              npz_stream_fault_offset(array->format_state));
    error_expected(error, "a member that can be unpacked");
    error_found(error, "%.100s", fault);
}

static int watch(void *state, struct file_sums *sums)
{
    const struct gad_array *array = state;
    (void)sums; /* its file is the array's path */
    npz_stream_check_first(array->format_state);
    return 0;
}

/* Whether each row is in one piece, and rows behind each other, with or without gaps. */
static bool has_rows(const struct gad_array_info *info, int64_t *ret_row_bytes)
{
    int64_t stride = (int64_t)gad_dtype_size(info->dtype);
    for (int i = info->ndim - 1; i > 0; i--) {
        if (info->shape[i] != 1 && info->strides[i] != stride)
            return false;
        stride *= info->shape[i];
    }
    *ret_row_bytes = stride;
    return info->ndim > 0 && info->strides[0] >= stride;
}

static int add_parts(const struct npz_packed *packed, struct packed_chunk *chunk,
                     struct packed_chunks *chunks)
{
    int r = 0;
    for (uint64_t at = 0; at < packed->size_bytes && r == 0; at += PART_BYTES) {
        chunk->n_bytes = (uint32_t)min_u64(packed->size_bytes - at, PART_BYTES);
        r = packed_add_chunk(chunks, chunk);
    }
    return r;
}

/* The member is parts of one stream; what is selected are rows of what it unpacks to. */
static int locate(void *state, struct packed_chunks *chunks)
{
    const struct gad_array *array = state;
    const struct codec_packing kind = {.is_stream = true};
    int64_t row_bytes;
    struct stat st;
    int fd;
    const struct npz_packed *packed = npz_stream_packed(array->format_state, &fd);
    struct packed_chunk chunk = {.offset_bytes = packed->offset_bytes,
                                 .size_bytes = packed->packed_bytes,
                                 .skipped = packed->crc};
    if (!has_rows(&array->info, &row_bytes))
        return ENOTSUP;
    if (fstat(fd, &st) < 0)
        return errno;
    const struct packed_part part = {.first_chunk = chunks->n_chunks,
                                     .is_stream = true,
                                     .begin_bytes = array->offset_bytes,
                                     .row_bytes = (uint64_t)row_bytes,
                                     .stride_bytes = (uint64_t)array->info.strides[0],
                                     .chunk_bytes = PART_BYTES,
                                     .n_rows = array->info.shape[0]};
    _cleanup_free_ char *path = realpath(array->info.path, NULL);
    int r = path ? packed_add_file(chunks, AT_FDCWD, path, &st, &chunk.file) : errno;
    if (r == 0)
        r = packed_add_kind(chunks, &kind, &chunk.kind);
    if (r == 0)
        r = add_parts(packed, &chunk, chunks);
    return r ? r : packed_add_part(chunks, &part);
}

static const struct provider deflated_provider = {
    .is_concurrent = true,
    .fill = fill,
    .explain = explain,
    .watch = watch,
    .locate = locate,
};

static void free_stream(struct gad_array *array)
{
    array->format_state = npz_stream_free(array->format_state);
}

static void set_provider(struct gad_array *array, struct npz_elements *elements)
{
    npz_stream_need(elements->stream, array->offset_bytes + file_array_n_bytes(array));
    array->access = ACCESS_PROVIDER;
    array->info.access = "provider";
    array->format_state = steal_ptr(elements->stream);
    array->maker_free = free_stream;
    array->provider = &deflated_provider;
}

static int describe(struct gad_array *array, const struct npz_archive *archive,
                    const struct zip_member *member, struct npz_elements *elements,
                    struct gad_error *error)
{
    const struct npy_header *header = &elements->header;
    bool is_stored = member->method == ZIP_STORED;
    const struct file_layout layout = {
        .dtype = header->dtype,
        .is_swapped = header->is_swapped,
        .fortran_order = header->fortran_order,
        .ndim = header->ndim,
        .shape = header->shape,
        .offset_bytes = header->data_offset_bytes + (is_stored ? elements->data_offset : 0),
    };
    int r = file_array_describe(array, &layout, archive->name, error);
    if (r)
        return r;
    if (!is_stored)
        set_provider(array, elements);
    else if (array->is_writable)
        r = npz_in_place_begin(array, archive, member, elements->data_offset, error);
    else
        r = npz_crc_check(array, archive, member, elements->data_offset, error);
    return r;
}

static int open_member(struct gad_array *array, const struct npz_archive *archive,
                       const struct spec *spec, struct gad_error *error)
{
    const struct zip_member *member = NULL;
    struct npz_elements elements = {.stream = NULL};
    int r = npz_member_get(archive, spec->dataset, &member, error);
    if (r)
        return r;
    if (array->is_writable && member->method != ZIP_STORED)
        return error_set(error, GAD_READ_ONLY, archive->name,
                         "only stored members can be written in place; '%.120s' is packed",
                         member->name);
    r = npz_member_elements(archive, member, NULL, &elements, error);
    if (r)
        return r;
    r = describe(array, archive, member, &elements, error);
    npz_stream_free(elements.stream);
    return r;
}

static int open_array(struct gad_array *array, const struct spec *spec, const char *name,
                      struct gad_error *error)
{
    struct npz_archive archive;
    int r = npz_archive_open(spec->path, array->is_writable, name, &archive, error);
    if (r)
        return r;
    r = open_member(array, &archive, spec, error);
    if (r == 0 && array->access == ACCESS_FILE)
        array->fd = steal_fd(&archive.fd);
    npz_archive_close(&archive);
    return r;
}

static int npz_open(struct gad_client *client, const struct spec *spec, const char *name,
                    bool for_writing, struct gad_array **ret_array, struct gad_error *error)
{
    return file_array_open(client, spec, name, for_writing, open_array, ret_array, error);
}

const struct format format_npz = {
    .name = "npz",
    .extensions = ".npz",
    .written = "FILE.npz:NAME",
    .has_chunks = true, /* none, but what packs them: npz_output.c says what of that */
    .takes_brackets = true,
    .normalise = npz_normalise,
    .has_dataset = npz_has_member,
    .parse_rest = npz_parse_rest,
    .open = npz_open,
    .create = npz_create,
    .list = npz_list,
};
