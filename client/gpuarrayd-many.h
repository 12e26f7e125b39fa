/** gpuarrayd: many sources as one array. Included by gpuarrayd.h.
 *
 *     const char *const specs[] = {"a.npy", "b.h5:/x", "2024-*.npy"};
 *     gad_array_open_many(client, 3, specs, NULL, &array, &error)
 *
 * For the files of one pattern gad_array_open() is enough.
 */
#pragma once

#include "gpuarrayd-meaning.h"
#include "gpuarrayd.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How several sources become one. Zeroed: behind each other along their first axis. */
struct gad_join_options {
    int axis;         /**< of the array that they become; negative ones count from the end */
    bool is_new_axis; /**< it is one more than they have, and each is one element along it */
    enum gad_masking masking; /**< as for gad_array_open_as() */
};

/** Opens several sources as one array, which can be read. None of them is loaded, and few are open
 * at a time, however many there are.
 * client: not NULL; whose jobs may use the array.
 * n, specs: at least one, each as of gad_array_open(). One whose path is a pattern stands for the
 * files that match, in natural order; it has neither a selection nor `:stack`.
 * options: NULL: zeroed.
 * ret_array: the caller's, given up by gad_array_release().
 *
 * All have one dtype and, but for the axis that is joined, one shape; byte orders and formats may
 * differ. They also have one scale, offset and fill value, unless GAD_AS_STORED is asked for. A
 * job fails with GAD_PROVIDER_FAILED when a file is not what it was when it was opened here:
 * replaced, written to, cut short, gone. (Of an HDF5 file that was written to, the dataset is
 * looked up anew.)
 *
 * GAD_BAD_DTYPE, GAD_BAD_SHAPE, GAD_BAD_FORMAT: they do not go together; the error is about the
 * first one that differs from those before, with what was expected and found. GAD_NOT_FOUND: also
 * when nothing matches a pattern. All others of gad_array_open(), about one of them. */
enum gad_status gad_array_open_many(struct gad_client *client, size_t n, const char *const *specs,
                                    const struct gad_join_options *options,
                                    struct gad_array **ret_array, struct gad_error *error);

#ifdef __cplusplus
}
#endif
