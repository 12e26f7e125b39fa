/* Attributes of varying length.
 *
 * In the file such an element is a length and a place in a global heap: the address of a collection
 * of objects, and an object's number. HDF5 follows these without doubt: a damaged length or
 * collection makes it write beyond its memory, run in circles or ask for all memory there is. So
 * elements are read as they are stored, by a conversion that leaves them as they are, and the heap
 * is read here, where each size is compared with what there is.
 *
 *     collection: "GCOL", version 1, 3 bytes, its size; then objects
 *     object:     number, count of references, 4 bytes, its size; its bytes, filled up to 8
 *
 * The conversion is registered for the one type of bytes that has our tag, and only while an
 * attribute is read, since HDF5's table of them is the whole process's.
 *
 * Called by hdf5_list_notes.c and hdf5_list_axes.c.
 */
#include "client/formats/hdf5/listing/hdf5_varying.h"
#include "client/formats/files/file_source.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/listing/list_memory.h"
#include "proto/util.h"

#include <string.h>

#define TAG                  "gpuarrayd: as stored"
#define MAX_COLLECTION_BYTES (64 << 20)

/* ---- Elements as they are stored ---- */

static bool has_tag(hid_t type)
{
    char *tag = H5Tget_tag(type);
    bool is_ours = tag && strcmp(tag, TAG) == 0;
    H5free_memory(tag);
    return is_ours;
}

static herr_t leave(hid_t from, hid_t to, H5T_cdata_t *data, size_t n, size_t stride,
                    size_t background_stride, void *bytes, void *background, hid_t plist)
{
    (void)n, (void)stride, (void)background_stride, (void)bytes, (void)background, (void)plist;
    if (data->command != H5T_CONV_INIT)
        return 0;
    bool is_varying = H5Tget_class(from) == H5T_VLEN || H5Tis_variable_str(from) > 0;
    return is_varying && has_tag(to) && H5Tget_size(from) == H5Tget_size(to) ? 0 : -1;
}

static bool read_stored(const struct hdf5_heap *heap, hid_t attribute, void *ret_elements)
{
    _cleanup_hid_ hid_t from = H5Aget_type(attribute);
    _cleanup_hid_ hid_t to = H5Tcreate(H5T_OPAQUE, 4 + heap->address_bytes + 4);
    if (from <= 0 || to <= 0 || H5Tset_tag(to, TAG) < 0 ||
        H5Tregister(H5T_PERS_SOFT, TAG, from, to, leave) < 0)
        return false;
    bool is_read = H5Aread(attribute, to, ret_elements) >= 0;
    (void)H5Tunregister(H5T_PERS_SOFT, TAG, from, to, leave);
    return is_read;
}

/* ---- The heap ---- */

void hdf5_heap_deinit(struct hdf5_heap *heap)
{
    free_ptr(&heap->collection);
}

/* How the attribute's file has addresses. */
static bool know_file(struct hdf5_heap *heap, hid_t attribute)
{
    struct object_id id;
    struct stat st;
    hsize_t base;
    size_t address_bytes, size_bytes;
    if (!object_id_of(attribute, &id))
        return false;
    if (heap->is_known && heap->file_number == id.file)
        return true;
    hdf5_heap_deinit(heap);
    *heap = (struct hdf5_heap){.fd = -1};
    _cleanup_hid_ hid_t file = H5Iget_file_id(attribute);
    _cleanup_hid_ hid_t plist = file > 0 ? H5Fget_create_plist(file) : H5I_INVALID_HID;
    if (plist <= 0 || H5Pget_userblock(plist, &base) < 0 ||
        H5Pget_sizes(plist, &address_bytes, &size_bytes) < 0 || address_bytes > 8 || size_bytes > 8)
        return false;
    int fd = hdf5_file_fd(file);
    if (fd < 0 || fstat(fd, &st) < 0)
        return false;
    *heap = (struct hdf5_heap){
        .file_number = id.file,
        .is_known = true,
        .fd = fd,
        .base_bytes = base,
        .file_bytes = (uint64_t)st.st_size,
        .address_bytes = (unsigned)address_bytes,
        .size_bytes = (unsigned)size_bytes,
    };
    return true;
}

static uint64_t number(const unsigned char *bytes, unsigned n)
{
    uint64_t value = 0;
    while (n-- > 0)
        value = value << 8 | bytes[n];
    return value;
}

static bool read_bytes(const struct hdf5_heap *heap, uint64_t address, void *bytes, size_t n)
{
    size_t n_read;
    return address <= heap->file_bytes && heap->base_bytes <= heap->file_bytes - address &&
           file_read(heap->fd, bytes, n, heap->base_bytes + address, &n_read) == 0 && n_read == n;
}

static bool read_collection(struct hdf5_heap *heap, uint64_t address)
{
    unsigned char head[16];
    unsigned n_head = 8 + heap->size_bytes;
    if (heap->collection && heap->address == address)
        return true;
    free_ptr(&heap->collection);
    if (!read_bytes(heap, address, head, n_head) || memcmp(head, "GCOL\1", 5) != 0)
        return false;
    uint64_t n = number(head + 8, heap->size_bytes);
    if (n < n_head || n > MAX_COLLECTION_BYTES || n > heap->file_bytes)
        return false;
    unsigned char *bytes = malloc(n);
    if (!bytes || !read_bytes(heap, address, bytes, n)) {
        free(bytes);
        return false;
    }
    heap->collection = bytes;
    heap->address = address;
    heap->n_bytes = n;
    return true;
}

/* NULL: there is no such object. */
static const unsigned char *find_object(const struct hdf5_heap *heap, uint32_t wanted,
                                        size_t *ret_n_bytes)
{
    size_t n_head = 8 + heap->size_bytes;
    for (size_t at = n_head; at + n_head <= heap->n_bytes;) {
        const unsigned char *object = heap->collection + at;
        uint64_t n = number(object + 8, heap->size_bytes);
        size_t left = heap->n_bytes - at - n_head;
        uint64_t index = number(object, 2);
        if (index == 0 || n > left) /* 0: what is free, at the end */
            return NULL;
        if (index == wanted) {
            *ret_n_bytes = n;
            return object + n_head;
        }
        at += n_head + min_u64(round_up_u64(n, 8), left);
    }
    return NULL;
}

/* False: it is damaged. */
static bool find_element(struct hdf5_heap *heap, const unsigned char *stored, size_t item_bytes,
                         struct hdf5_varying *ret)
{
    size_t n_bytes, n_wanted;
    uint64_t n = number(stored, 4), address = number(stored + 4, heap->address_bytes);
    uint64_t index = number(stored + 4 + heap->address_bytes, 4);
    *ret = (struct hdf5_varying){0, NULL};
    if (n == 0 || address == 0)
        return true;
    if (__builtin_mul_overflow(n, item_bytes, &n_wanted) || !read_collection(heap, address))
        return false;
    const unsigned char *items = find_object(heap, (uint32_t)index, &n_bytes);
    if (!items || n_bytes < n_wanted)
        return false;
    *ret = (struct hdf5_varying){n, items};
    return true;
}

bool hdf5_varying_read(struct hdf5_heap *heap, hid_t attribute, size_t n, size_t item_bytes,
                       void (*take)(void *userdata, size_t i, struct hdf5_varying element),
                       void *userdata)
{
    if (!know_file(heap, attribute))
        return false;
    size_t n_stored = 4 + heap->address_bytes + 4;
    _cleanup_free_ unsigned char *stored = calloc(n, n_stored);
    if (!stored || !read_stored(heap, attribute, stored))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct hdf5_varying element;
        if (!find_element(heap, stored + i * n_stored, item_bytes, &element))
            return false;
        take(userdata, i, element);
    }
    return true;
}
