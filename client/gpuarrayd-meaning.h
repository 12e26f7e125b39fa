/** gpuarrayd: what a file says of an array besides its elements. Included by gpuarrayd.h.
 *
 * netCDF and its kin store numbers packed, as integers with a scale and an offset, and name values
 * that stand for nothing measured. Expressions see the elements as they are stored, unless an array
 * was opened with GAD_MASK_AND_SCALE: then they see what is meant, and NaN where nothing is.
 *
 * The library alone makes struct gad_meaning, and later versions may have more members at its end:
 * take it by pointer, do not copy it.
 */
#pragma once

/** How packed elements are taken. Here, because headers that gpuarrayd.h includes name it. */
enum gad_masking {
    GAD_MASK_UNSAID,    /**< nobody has said: as they are stored, see gad_meaning.is_unsaid */
    GAD_AS_STORED,      /**< as they are stored */
    GAD_MASK_AND_SCALE, /**< as they are meant */
};

#include "gpuarrayd.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How an array is opened. Zeroed: as gad_array_open() does. */
struct gad_open_options {
    bool in_place; /**< for writing too, as gad_array_open_in_place() */
    enum gad_masking masking;
};

/** Opens a source as its attributes say, or an array that is written in place.
 *
 * With GAD_MASK_AND_SCALE its elements are, wherever an expression names the array, `stored *
 * scale_factor + add_offset`, and NaN where `stored` is a fill value or beyond valid_range (or
 * valid_min, valid_max). It is computed on the way, as part of the expression: nothing is copied,
 * and nothing read twice. The dtype is a float wherever something can be NaN or is scaled, chosen
 * as xarray does; gad_meaning.dtype names it. Fill values of integers are compared exactly.
 * An array without such attributes is the same either way. Where an array is masked and scaled, its
 * argument's name may be none that means something else in expressions, as `e` or `max` do
 * (GAD_BAD_EXPRESSION of the job), and what masks and scales it counts among an expression's
 * characters (GAD_LIMIT_EXCEEDED).
 *
 * client, spec: as for gad_array_open().
 * options: not NULL.
 * ret_array: the caller's, given up by gad_array_release(). One that is masked and scaled can be a
 * source only.
 * The statuses of gad_array_open(), or of gad_array_open_in_place(). GAD_BAD_ARGUMENT: also to mask
 * and scale what is written in place. GAD_BAD_FORMAT: also a scale_factor or add_offset that is no
 * single finite number, where it is asked for. */
enum gad_status gad_array_open_as(struct gad_client *client, const char *spec,
                                  const struct gad_open_options *options,
                                  struct gad_array **ret_array, struct gad_error *error);

/** What the attributes of an array say. */
struct gad_meaning {
    const char *packing;  /**< attributes by which the stored elements are not what is meant, as
                               "_FillValue, scale_factor"; "" where there are none */
    bool is_unsaid;       /**< there are some, and whoever opened it said neither way: worth a
                               warning, once */
    bool is_unpacked;     /**< expressions see what is meant */
    enum gad_dtype dtype; /**< of the elements as expressions see them */
    size_t n_fills;
    const struct gad_scalar *fills;             /**< all values that stand for nothing measured */
    struct gad_scalar valid_min, valid_max;     /**< of stored elements; GAD_SCALAR_NONE: no such */
    struct gad_scalar scale_factor, add_offset; /**< GAD_SCALAR_NONE: no such */
    const char *units, *long_name, *standard_name; /**< NULL: not said */
    const char *const *dimensions; /**< a name for each axis, which may be NULL; NULL: none has
                                        one */
};

/** What is known of an array from its file.
 * array: NULL gives NULL. The answer is the library's and as long valid as the array; of an array
 * without attributes all members are empty but `dtype`. NULL also when memory is short. */
const struct gad_meaning *gad_array_meaning(struct gad_array *array);

#ifdef __cplusplus
}
#endif
