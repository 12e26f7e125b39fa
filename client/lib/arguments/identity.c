/* What arrays are told by, where a loop of jobs that was ended is gone on with: checkpoints of
 * decompositions, and files of many steps of time.
 *
 * Sums as in FNV-1a, of words of eight bytes; its multiplication alone would leave the low half
 * without what differs in the high one.
 */
#include "client/lib/arguments/identity.h"
#include "client/formats/files/file_mark.h"
#include "client/lib/views/view.h"
#include "proto/util.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FNV_PRIME UINT64_C(0x100000001b3)

static uint64_t add_word(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * FNV_PRIME;
    return sum ^ sum >> 32;
}

uint64_t identity_bytes(uint64_t sum, const void *bytes, size_t n_bytes)
{
    const char *at = bytes;
    uint64_t word;
    for (; n_bytes >= sizeof(word); at += sizeof(word), n_bytes -= sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        sum = add_word(sum, word);
    }
    word = 0;
    if (n_bytes > 0)
        memcpy(&word, at, n_bytes);
    return add_word(sum, word ^ (uint64_t)n_bytes << 56);
}

uint64_t identity_text(uint64_t sum, const char *text)
{
    return identity_bytes(sum, text ? text : "", text ? strlen(text) : 0);
}

/* Elements in C order, in runs as long as they lie behind each other. */
static uint64_t add_elements(uint64_t sum, const struct gad_array_info *info, const char *at,
                             int axis)
{
    int64_t run = (int64_t)gad_dtype_size(info->dtype);
    bool is_run = true;
    for (int i = info->ndim - 1; i >= axis; i--) {
        is_run &= info->shape[i] == 1 || info->strides[i] == run;
        run *= info->shape[i];
    }
    if (is_run || run == 0)
        return identity_bytes(sum, at, (size_t)run);
    for (int64_t i = 0; i < info->shape[axis]; i++)
        sum = add_elements(sum, info, at + i * info->strides[axis], axis + 1);
    return sum;
}

static uint64_t add_files(uint64_t sum, const struct gad_array *array)
{
    const struct provider *provider = array->provider;
    struct file_sums inside = {0};
    struct stat st;
    if (array->info.path) {
        _cleanup_free_ char *path = realpath(array->info.path, NULL);
        sum = identity_text(sum, path ? path : array->info.path);
        if (stat(array->info.path, &st) == 0) {
            sum = add_word(sum, (uint64_t)st.st_size);
            sum = add_word(sum, (uint64_t)st.st_mtim.tv_sec);
            sum = add_word(sum, (uint64_t)st.st_mtim.tv_nsec);
        }
    }
    if (provider && provider->watch) /* what has changed already, the job finds out, too */
        (void)provider->watch(array->provider_state, &inside);
    return add_word(add_word(sum, inside.names), inside.contents);
}

/* Which of its file: what the program named it by, behind the path. */
static uint64_t add_spec(uint64_t sum, const struct gad_array *array)
{
    const char *spec = array->spec, *path = array->info.path;
    size_t n = path ? strlen(path) : 0;
    bool is_behind = spec && path && strncmp(spec, path, n) == 0;
    return identity_text(sum, is_behind ? spec + n : spec);
}

/* Where a view begins in its array, and how its axes go along those. */
static uint64_t add_view(uint64_t sum, const struct view_blocks *view)
{
    sum = identity_bytes(sum, view->start, sizeof(view->start));
    for (int i = 0; i < view->ndim; i++) {
        sum = add_word(sum, (uint64_t)view->axes[i].axis);
        sum = add_word(sum, (uint64_t)view->axes[i].step);
    }
    return identity_array(sum, view->base);
}

uint64_t identity_array(uint64_t sum, const struct gad_array *array)
{
    const struct gad_array_info *info = &array->info;
    bool is_memory = array->access == ACCESS_MEMORY || array->access == ACCESS_REGION;
    const struct view_blocks *view = view_blocks_of(array);
    sum = identity_text(sum, info->format);
    sum = add_word(add_word(sum, (uint64_t)info->dtype), info->is_swapped);
    sum = identity_bytes(sum, info->shape, sizeof(*info->shape) * (size_t)info->ndim);
    if (is_memory)
        return array->data ? add_elements(sum, info, array->data, 0) : sum;
    sum = add_spec(sum, array);
    if (view)
        return add_view(sum, view);
    sum = add_word(sum, array->offset_bytes);
    sum = identity_bytes(sum, info->strides, sizeof(*info->strides) * (size_t)info->ndim);
    return add_files(sum, array);
}

uint64_t identity_argument(uint64_t sum, const struct gad_argument *arg)
{
    sum = add_word(identity_text(sum, arg->name), (uint64_t)arg->scalar);
    if (arg->array)
        return identity_array(sum, arg->array);
    if (arg->scalar == GAD_SCALAR_FLOAT)
        return identity_bytes(sum, &arg->float_value, sizeof(arg->float_value));
    return identity_bytes(sum, &arg->int_value, sizeof(arg->int_value));
}
