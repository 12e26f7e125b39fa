/* Any bytes as the beginning of an npy file.
 *
 * Checked: a header that is accepted has sane numbers, and is read back the same after it was
 * written; one that is refused says why.
 */
#include "client/formats/npy/npy_header.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

static void check_accepted(const struct npy_header *header, size_t n_bytes)
{
    char bytes[NPY_DATA_OFFSET];
    struct npy_header again;
    struct array array = {.dtype = header->dtype, .ndim = header->ndim};
    assert(header->ndim >= 0 && header->ndim <= ARRAY_MAX_NDIM);
    assert(header->data_offset_bytes <= n_bytes);
    memcpy(array.shape, header->shape, sizeof(array.shape));
    assert(array_check(&array, "x", NULL) == 0);
    assert(array_n_bytes(&array) >= 0);

    npy_header_format(header->dtype, header->ndim, header->shape, header->fortran_order, bytes);
    int r = npy_header_parse(bytes, sizeof(bytes), "x", &again, NULL);
    assert(r == 0);
    assert(again.dtype == header->dtype && again.fortran_order == header->fortran_order);
    assert(again.ndim == header->ndim && !again.is_swapped);
    assert(memcmp(again.shape, header->shape, sizeof(again.shape)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct npy_header header;
    struct gad_error error = {0};
    int r = npy_header_parse(data, n_bytes, "x", &header, &error);
    if (r == 0)
        check_accepted(&header, n_bytes);
    else
        assert(r > 0 && error.status == (enum gad_status)r && error.message[0]);
    return 0;
}
