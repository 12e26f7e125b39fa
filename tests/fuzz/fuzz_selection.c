/* Any text as the name of a source with a selection behind it.
 *
 * Checked: a name that is accepted can be taken apart; a selection that is accepted takes elements
 * of the array only, along each axis and as bytes, and its part of a grid of chunks is one of as
 * many chunks; what is refused says why. The array has the shape of a raw name, else 7 x 0 x 5 x 8.
 */
#include "client/formats/chunk_pick.h"
#include "client/formats/format_impl.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void check_axes(const struct selection *selection, const int64_t *shape)
{
    int next = 0;
    for (int i = 0; i < selection->source_ndim; i++) {
        const struct selection_axis *axis = &selection->axes[i];
        assert(axis->count >= 0 && axis->count <= shape[i] && axis->step != 0);
        assert(!axis->is_dropped || axis->count == 1);
        assert(axis->count > 1 || axis->step == 1);
        if (axis->count == 0)
            continue;
        int64_t last = axis->start + (axis->count - 1) * axis->step;
        assert(axis->start >= 0 && axis->start < shape[i] && last >= 0 && last < shape[i]);
    }
    for (int i = 0; i < selection->ndim; i++) {
        if (selection->axis_of[i] == SELECTION_NEW_AXIS)
            continue;
        for (; next < selection->axis_of[i]; next++)
            assert(selection->axes[next].is_dropped);
        assert(next < selection->source_ndim && !selection->axes[next++].is_dropped);
    }
}

static void check_bytes(const struct selection *selection, const struct array *whole)
{
    struct array part = *whole;
    int64_t low, high, whole_low, whole_high;
    uint64_t offset = 0;
    selection_apply(selection, &part, &offset);
    part.at.kind = LOCATION_FILE;
    part.at.file.offset_bytes = offset;
    assert(array_check(&part, "x", NULL) == 0);
    array_extent(whole, &whole_low, &whole_high);
    array_extent(&part, &low, &high);
    assert(array_n_elements(&part) <= array_n_elements(whole));
    assert(high == 0 || ((int64_t)offset + low >= 0 && (int64_t)offset + high <= whole_high));
}

static void check_chunks(const struct selection *selection, const struct array *whole)
{
    int64_t chunk_shape[ARRAY_MAX_NDIM];
    struct chunk_grid grid;
    struct chunk_pick pick;
    for (int i = 0; i < whole->ndim; i++)
        chunk_shape[i] = whole->shape[i] / (i + 1) + 1;
    if (!chunk_grid_init(&grid, whole->ndim, whole->shape, chunk_shape, 8) ||
        !chunk_pick_init(&pick, &grid, selection, 8))
        return;
    assert(pick.grid.ndim == selection->ndim && pick.grid.n_chunks == pick.box.n_chunks);
    assert(pick.skip_bytes + pick.grid.chunk_bytes <= grid.chunk_bytes);
    for (int i = 0; i < whole->ndim; i++)
        assert(pick.origin[i] >= 0 && pick.origin[i] % chunk_shape[i] == 0 &&
               pick.origin[i] / chunk_shape[i] + pick.box.n_chunks_of[i] <= grid.n_chunks_of[i]);
}

static void check_selection(const char *text, const struct spec *spec)
{
    struct array whole = {.dtype = DTYPE_FLOAT64, .ndim = 4, .shape = {7, 0, 5, 8}};
    struct selection selection;
    struct gad_error error = {0};
    if (spec->format == &format_raw) {
        whole.ndim = spec->ndim;
        memcpy(whole.shape, spec->shape, sizeof(whole.shape));
    }
    if (array_check(&whole, "x", NULL))
        return; /* before a selection is read the formats have refused it */
    array_c_strides(whole.ndim, whole.shape, 8, whole.strides);
    if (array_check(&whole, "x", NULL))
        return;
    int r = selection_read(text, spec->selection_at, whole.ndim, whole.shape, &selection, &error);
    if (r) {
        assert(r == GAD_BAD_ARGUMENT && error.message[0]);
        return;
    }
    assert(selection.source_ndim == whole.ndim && selection.ndim <= ARRAY_MAX_NDIM);
    check_axes(&selection, whole.shape);
    check_bytes(&selection, &whole);
    check_chunks(&selection, &whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct spec spec;
    struct gad_error error = {0};
    char *text = malloc(n_bytes + 1);
    if (!text)
        return 0;
    memcpy(text, data, n_bytes);
    text[n_bytes] = '\0';
    int r = spec_parse(text, n_bytes % 2, &spec, &error);
    if (r) {
        assert(r > 0 && error.status == (enum gad_status)r && error.message[0]);
    } else {
        assert(spec.path[0] && (spec.format != &format_hdf5 || spec.dataset[0] == '/'));
        assert(!spec.literal || spec.selection_at);
        if (spec.selection_at)
            check_selection(text, &spec);
        spec_deinit(&spec);
    }
    free(text);
    return 0;
}
