/* What is in a file, for gad_list().
 *
 * A spec without a name behind its path means all of the file; formats with several arrays in a
 * file list by themselves (struct format, `list`). A file of any other format is one array, which
 * is opened as a job would open it.
 *
 * Behind the name of an array in a file there may be a selection, as where it is opened: what
 * exists under the whole name comes first here too.
 *
 * A function may not want what is in a group. A format that would have to read it then is told so;
 * of others the entries are left out here.
 *
 * Called by open.c.
 */
#include "client/formats/format_impl.h"
#include "client/formats/selection.h"
#include "proto/util.h"

#include <string.h>

struct teller {
    gad_list_function *function;
    void *userdata;
    const struct format *format;
    bool has_told, is_short; /* is_short: of memory */
    char *past;              /* a group that is passed over; NULL: none */
};

static bool is_in(const char *name, const char *group)
{
    size_t n = group ? strlen(group) : 0;
    return n > 0 && strncmp(name, group, n) == 0 && name[n] == '/';
}

static int pass_on(void *userdata, const struct gad_listed *entry)
{
    struct teller *teller = userdata;
    if (is_in(entry->name, teller->past))
        return GAD_LIST_ON;
    teller->has_told = true;
    int step = teller->function(teller->userdata, entry);
    if (step != GAD_LIST_PAST)
        return step;
    if (entry->kind != GAD_LISTED_GROUP)
        return GAD_LIST_ON;
    if (teller->format->passes_over)
        return GAD_LIST_PAST;
    if (strcmp(entry->name, "/") == 0)
        return GAD_LIST_END;
    free(teller->past);
    teller->past = strdup(entry->name);
    teller->is_short = !teller->past;
    return teller->is_short ? GAD_LIST_END : GAD_LIST_ON;
}

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

static int list_place(const struct format_place *place, const char *text, struct teller *teller,
                      struct gad_error *error)
{
    const char *dataset = place->rest + (*place->rest == ':');
    if (!dataset[strspn(dataset, "/")])
        dataset = "";
    teller->format = place->format;
    int r = place->format->list(place->path, dataset, text, pass_on, teller, error);
    free_ptr(&teller->past);
    if (r == 0 && teller->is_short)
        return error_from_errno(error, ENOMEM, text, "a list");
    if (r || teller->has_told || !*dataset)
        return r;
    return error_set(error, GAD_NOT_FOUND, text, "there is no '%.100s' in '%.120s'", dataset,
                     place->path);
}

static int list_text(const char *text, struct teller *teller, struct gad_error *error)
{
    struct format_place place;
    int r = spec_place(text, text, &place, error);
    if (r)
        return r;
    place.format = format_of_file(place.format, place.path);
    r = place.format->list ? list_place(&place, text, teller, error)
                           : list_one(text, teller->function, teller->userdata, error);
    free(place.path);
    return r;
}

int format_list(const char *text, gad_list_function *function, void *userdata,
                struct gad_error *error)
{
    struct teller teller = {.function = function, .userdata = userdata};
    size_t at;
    int r = list_text(text, &teller, error);
    if (r != GAD_NOT_FOUND || !selection_find(text, strlen(text), &at))
        return r;
    while (at > 0 && text[at - 1] == ' ')
        at--;
    _cleanup_free_ char *name = strndup(text, at);
    if (!name)
        return error_from_errno(error, ENOMEM, text, "spec");
    struct gad_error found;
    int whole = list_text(name, &teller, &found);
    return whole == 0 ? 0 : r; /* what is not there under either name is called as it was written */
}
