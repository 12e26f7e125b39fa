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
#include "client/formats/files/file_array.h"
#include "client/formats/files/file_provider.h"
#include "client/formats/format_impl.h"
#include "client/formats/npz/npz_crc.h"
#include "client/formats/npz/npz_in_place.h"
#include "client/formats/npz/npz_member.h"
#include "client/formats/npz/npz_output.h"
#include "proto/util.h"

#include <string.h>

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
    error_set(error, GAD_PROVIDER_FAILED, argument, "%.200s: %s",
              array->spec ? array->spec : array->info.path, fault);
}

static int watch(void *state, struct file_sums *sums)
{
    const struct gad_array *array = state;
    (void)sums; /* its file is the array's path */
    npz_stream_check_first(array->format_state);
    return 0;
}

static const struct provider deflated_provider = {
    .is_concurrent = true,
    .fill = fill,
    .explain = explain,
    .watch = watch,
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
