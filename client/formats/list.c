/* What is in a file, for gad_list().
 *
 * A spec without a name behind its path means all of the file; formats with several arrays in a
 * file list by themselves (struct format, `list`). A file of any other format is one array, which
 * is opened as a job would open it.
 *
 * Called by open.c.
 */
#include "client/formats/format_impl.h"
#include "proto/util.h"

#include <string.h>

static int list_array(struct gad_array *array, gad_list_function *function, void *userdata)
{
    const struct gad_array_info *info = &array->info;
    const struct gad_listed entry = {
        .kind = GAD_LISTED_ARRAY,
        .name = "",
        .type = gad_dtype_name(info->dtype),
        .is_served = true,
        .ndim = info->ndim,
        .shape = info->shape,
        .filters = "",
    };
    return function(userdata, &entry);
}

static int list_one(const char *text, gad_list_function *function, void *userdata,
                    struct gad_error *error)
{
    struct gad_array *array;
    int r = format_open(NULL, text, false, &array, error);
    if (r)
        return r;
    (void)list_array(array, function, userdata);
    gad_array_release(array);
    return 0;
}

int format_list(const char *text, gad_list_function *function, void *userdata,
                struct gad_error *error)
{
    struct format_place place;
    int r = spec_place(text, text, &place, error);
    if (r)
        return r;
    place.format = format_of_file(place.format, place.path);
    r = place.format->list ? place.format->list(place.path, place.rest + (*place.rest == ':'), text,
                                                function, userdata, error)
                           : list_one(text, function, userdata, error);
    free(place.path);
    return r;
}
