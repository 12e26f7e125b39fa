/* Selections, from text to numbers.
 *
 *     [10:20, ..., -1, newaxis, ::-2]
 *
 * Integers drop their axis, slices clip to it, one `...` stands for the axes that are not named,
 * `newaxis` or `None` adds one of size 1; axes at the end may be left out. All as NumPy has it for
 * basic indexing, blanks wherever Python allows them. Lists of indices and masks are refused: they
 * are no view of the source.
 *
 * The text is read into items first, which needs no shape, then the items are laid on the axes.
 * Numbers beyond 63 bits are taken as the greatest, which slices clip and integers refuse.
 *
 * Called by the formats when they open, and by spec.c to find where a selection begins.
 */
#include "client/formats/selection.h"
#include "proto/util.h"

#include <inttypes.h>
#include <string.h>

#define MAX_ITEMS  (2 * ARRAY_MAX_NDIM + 1) /* every axis, as many new ones, an ellipsis */
#define SHOW_CHARS 24
#define BLANKS     " \t\n"

enum item_kind { ITEM_INDEX, ITEM_SLICE, ITEM_ELLIPSIS, ITEM_NEW_AXIS };

struct item {
    enum item_kind kind;
    size_t at, n_chars;
    int64_t start, stop, step; /* INDEX: start */
    bool has_start, has_stop;
};

struct reader {
    const char *text;
    size_t at, end; /* end: of the closing bracket */
    unsigned n_items;
    struct item items[MAX_ITEMS];
    struct gad_error *error;
};

/* Reading -------------------------------------------------------------------------------------- */

static void skip_blanks(struct reader *reader)
{
    reader->at += strspn(reader->text + reader->at, BLANKS);
}

static bool take(struct reader *reader, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(reader);
    if (strncmp(reader->text + reader->at, word, n) != 0)
        return false;
    reader->at += n;
    return true;
}

static int shown_chars(size_t n_chars)
{
    return (int)(n_chars < SHOW_CHARS ? n_chars : SHOW_CHARS);
}

/* What stands at the reader's place is not what may stand there. */
static int fail_here(struct reader *reader, const char *expected)
{
    skip_blanks(reader);
    const char *rest = reader->text + reader->at;
    error_set(reader->error, GAD_BAD_ARGUMENT, reader->text,
              "the selection cannot be read at character %zu: '%.*s'", reader->at + 1,
              shown_chars(strlen(rest)), rest);
    error_expected(reader->error, "%s", expected);
    error_found(reader->error, "'%.*s' at character %zu", shown_chars(strlen(rest)), rest,
                reader->at + 1);
    return GAD_BAD_ARGUMENT;
}

/* A decimal number with its sign; beyond 63 bits: the greatest. False: there is none, and
 * ret_value is as it was. */
static bool take_number(struct reader *reader, int64_t *ret_value)
{
    size_t before = reader->at;
    bool is_negative = take(reader, "-");
    if (!is_negative)
        take(reader, "+");
    skip_blanks(reader);
    const char *digits = reader->text + reader->at;
    size_t n = strspn(digits, "0123456789");
    int64_t value = 0;
    for (size_t i = 0; i < n; i++)
        if (mul_overflows_i64(value, 10, &value) ||
            add_overflows_i64(value, digits[i] - '0', &value)) {
            value = INT64_MAX;
            break;
        }
    if (n == 0) {
        reader->at = before;
        return false;
    }
    reader->at += n;
    *ret_value = is_negative ? -value : value;
    return true;
}

static int step_error(struct reader *reader, size_t at)
{
    error_set(reader->error, GAD_BAD_ARGUMENT, reader->text, "the step at character %zu is 0",
              at + 1);
    error_expected(reader->error, "a step that is not 0, as in ::2 or ::-1");
    error_found(reader->error, "0 at character %zu", at + 1);
    return GAD_BAD_ARGUMENT;
}

static int read_slice(struct reader *reader, struct item *item)
{
    item->kind = ITEM_SLICE;
    item->has_stop = take_number(reader, &item->stop);
    item->step = 1;
    if (!take(reader, ":"))
        return 0;
    skip_blanks(reader);
    size_t at = reader->at;
    if (take_number(reader, &item->step) && item->step == 0)
        return step_error(reader, at);
    return 0;
}

static int read_item(struct reader *reader, struct item *item)
{
    skip_blanks(reader);
    *item = (struct item){.at = reader->at};
    int r = 0;
    if (take(reader, "..."))
        item->kind = ITEM_ELLIPSIS;
    else if (take(reader, "newaxis") || take(reader, "None") || take(reader, "np.newaxis"))
        item->kind = ITEM_NEW_AXIS;
    else {
        item->has_start = take_number(reader, &item->start);
        if (take(reader, ":"))
            r = read_slice(reader, item);
        else if (!item->has_start)
            r = fail_here(reader, "an integer, a slice as 10:20 or ::-2, ... or newaxis");
    }
    item->n_chars = reader->at - item->at;
    return r;
}

static int read_items(struct reader *reader)
{
    do {
        if (reader->n_items == MAX_ITEMS)
            return error_set(reader->error, GAD_BAD_ARGUMENT, reader->text,
                             "a selection has at most %d parts", MAX_ITEMS);
        int r = read_item(reader, &reader->items[reader->n_items++]);
        if (r)
            return r;
        if (!take(reader, ","))
            break;
        skip_blanks(reader);
    } while (reader->at != reader->end);
    skip_blanks(reader);
    return reader->at == reader->end ? 0 : fail_here(reader, "',' or the ']' of the end");
}

/* Laying on axes ------------------------------------------------------------------------------- */

static int too_many_error(const struct reader *reader, int n_indices, int ndim,
                          const int64_t *shape)
{
    char text[96];
    array_format_shape(ndim, shape, text, sizeof(text));
    error_set(reader->error, GAD_BAD_ARGUMENT, reader->text,
              "too many indices: the array has %d dimension%s, %d were indexed", ndim,
              ndim == 1 ? "" : "s", n_indices);
    error_expected(reader->error, "at most %d for the shape %s", ndim, text);
    error_found(reader->error, "%d", n_indices);
    return GAD_BAD_ARGUMENT;
}

static int bounds_error(const struct reader *reader, const struct item *item, int axis,
                        int64_t size)
{
    const char *shown = reader->text + item->at;
    int n = shown_chars(item->n_chars);
    error_set(reader->error, GAD_BAD_ARGUMENT, reader->text,
              "index %.*s at character %zu is out of bounds for axis %d with size %" PRId64, n,
              shown, item->at + 1, axis, size);
    if (size > 0)
        error_expected(reader->error, "%" PRId64 " to %" PRId64, -size, size - 1);
    else
        error_expected(reader->error, "a slice: the axis is empty");
    error_found(reader->error, "%.*s", n, shown);
    return GAD_BAD_ARGUMENT;
}

static int lay_index(const struct reader *reader, const struct item *item, int axis, int64_t size,
                     struct selection_axis *ret_axis)
{
    int64_t at = item->start < 0 ? item->start + size : item->start;
    if (at < 0 || at >= size)
        return bounds_error(reader, item, axis, size);
    *ret_axis = (struct selection_axis){.start = at, .step = 1, .count = 1, .is_dropped = true};
    return 0;
}

/* A limit of a slice inside [low, high]; negative ones count from the end. */
static int64_t clip(int64_t limit, int64_t size, int64_t low, int64_t high)
{
    if (limit < 0)
        limit += size;
    return limit < low ? low : limit > high ? high : limit;
}

static struct selection_axis lay_slice(const struct item *item, int64_t size)
{
    bool is_down = item->step < 0;
    int64_t low = is_down ? -1 : 0, high = is_down ? size - 1 : size, count = 0;
    int64_t start = is_down ? high : low, stop = is_down ? low : high;
    if (item->has_start)
        start = clip(item->start, size, low, high);
    if (item->has_stop)
        stop = clip(item->stop, size, low, high);
    if (is_down && stop < start)
        count = (start - stop - 1) / -item->step + 1;
    if (!is_down && start < stop)
        count = (stop - start - 1) / item->step + 1;
    return (struct selection_axis){
        .start = count ? start : 0, .step = count > 1 ? item->step : 1, .count = count};
}

static int add_axis(const struct reader *reader, struct selection *selection, int axis)
{
    if (selection->ndim == ARRAY_MAX_NDIM)
        return error_set(reader->error, GAD_BAD_ARGUMENT, reader->text,
                         "the selection has more than %d dimensions", ARRAY_MAX_NDIM);
    selection->axis_of[selection->ndim++] = axis;
    return 0;
}

static int add_whole_axes(const struct reader *reader, struct selection *selection, int n,
                          const int64_t *shape)
{
    int r = 0;
    for (int i = 0; i < n && r == 0; i++) {
        int axis = selection->source_ndim++;
        selection->axes[axis] =
            (struct selection_axis){.start = 0, .step = 1, .count = shape[axis]};
        r = add_axis(reader, selection, axis);
    }
    return r;
}

static int lay_item(const struct reader *reader, const struct item *item, const int64_t *shape,
                    struct selection *selection)
{
    if (item->kind == ITEM_NEW_AXIS)
        return add_axis(reader, selection, SELECTION_NEW_AXIS);
    int axis = selection->source_ndim++;
    if (item->kind == ITEM_INDEX)
        return lay_index(reader, item, axis, shape[axis], &selection->axes[axis]);
    selection->axes[axis] = lay_slice(item, shape[axis]);
    return add_axis(reader, selection, axis);
}

static int second_ellipsis_error(const struct reader *reader, const struct item *item)
{
    error_set(reader->error, GAD_BAD_ARGUMENT, reader->text,
              "a second ... at character %zu: there can be one", item->at + 1);
    error_expected(reader->error, "one ...");
    error_found(reader->error, "another at character %zu", item->at + 1);
    return GAD_BAD_ARGUMENT;
}

static int lay_items(const struct reader *reader, int ndim, const int64_t *shape,
                     struct selection *selection)
{
    int n_indices = 0, r = 0;
    bool has_ellipsis = false;
    for (unsigned i = 0; i < reader->n_items; i++)
        n_indices += reader->items[i].kind == ITEM_INDEX || reader->items[i].kind == ITEM_SLICE;
    if (n_indices > ndim)
        return too_many_error(reader, n_indices, ndim, shape);
    for (unsigned i = 0; i < reader->n_items && r == 0; i++) {
        const struct item *item = &reader->items[i];
        if (item->kind != ITEM_ELLIPSIS) {
            r = lay_item(reader, item, shape, selection);
            continue;
        }
        if (has_ellipsis)
            return second_ellipsis_error(reader, item);
        has_ellipsis = true;
        r = add_whole_axes(reader, selection, ndim - n_indices, shape);
    }
    return r ? r : add_whole_axes(reader, selection, ndim - selection->source_ndim, shape);
}

int selection_read(const char *text, size_t at, int ndim, const int64_t *shape,
                   struct selection *ret_selection, struct gad_error *error)
{
    struct selection selection = {0};
    struct reader reader = {.text = text, .at = at + 1, .end = strlen(text), .error = error};
    while (reader.end > at + 1 && strchr(BLANKS, text[reader.end - 1]))
        reader.end--;
    reader.end--; /* of the bracket */
    int r = read_items(&reader);
    if (r == 0)
        r = lay_items(&reader, ndim, shape, &selection);
    if (r == 0)
        *ret_selection = selection;
    return r;
}

/* Using ---------------------------------------------------------------------------------------- */

bool selection_find(const char *text, size_t n_chars, size_t *ret_at)
{
    size_t n = n_chars, depth = 0;
    while (n > 0 && strchr(BLANKS, text[n - 1]))
        n--;
    if (n == 0 || text[n - 1] != ']')
        return false;
    for (size_t i = n; i-- > 1;) { /* a name comes first */
        if (text[i] == ']')
            depth++;
        else if (text[i] == '[' && --depth == 0) {
            *ret_at = i;
            return true;
        }
    }
    return false;
}

void selection_whole(int ndim, const int64_t *shape, struct selection *ret_selection)
{
    *ret_selection = (struct selection){.source_ndim = ndim, .ndim = ndim};
    for (int i = 0; i < ndim; i++) {
        ret_selection->axes[i] = (struct selection_axis){.start = 0, .step = 1, .count = shape[i]};
        ret_selection->axis_of[i] = i;
    }
}

int64_t selection_size(const struct selection *selection, int i)
{
    int axis = selection->axis_of[i];
    return axis == SELECTION_NEW_AXIS ? 1 : selection->axes[axis].count;
}

bool selection_is_empty(const struct selection *selection)
{
    for (int i = 0; i < selection->source_ndim; i++)
        if (selection->axes[i].count == 0)
            return true;
    return false;
}

void selection_apply(const struct selection *selection, struct array *array, uint64_t *offset_bytes)
{
    int64_t strides[ARRAY_MAX_NDIM] = {0};
    memcpy(strides, array->strides, sizeof(strides));
    for (int i = 0; i < selection->source_ndim; i++)
        *offset_bytes += (uint64_t)(selection->axes[i].start * strides[i]);
    array->ndim = selection->ndim;
    memset(array->shape, 0, sizeof(array->shape));
    memset(array->strides, 0, sizeof(array->strides));
    for (int i = 0; i < selection->ndim; i++) {
        int axis = selection->axis_of[i];
        array->shape[i] = selection_size(selection, i);
        array->strides[i] = axis == SELECTION_NEW_AXIS ? (int64_t)dtype_size(array->dtype)
                                                       : strides[axis] * selection->axes[axis].step;
    }
}

void selection_meet(const struct selection_axis *axis, int64_t low, int64_t length,
                    int64_t *ret_first, int64_t *ret_end)
{
    int64_t high = low + length, step = axis->step;
    if (step > 0) {
        *ret_first = axis->start >= low ? 0 : (low - axis->start - 1) / step + 1;
        *ret_end = axis->start >= high ? 0 : (high - axis->start - 1) / step + 1;
    } else {
        *ret_first = axis->start < high ? 0 : (axis->start - high) / -step + 1;
        *ret_end = axis->start < low ? 0 : (axis->start - low) / -step + 1;
    }
}
