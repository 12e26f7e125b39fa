/* Names of arrays in a file of several, as specs have them.
 *
 * Called through the rows of the formats whose files have several arrays.
 */
#include "client/formats/dataset_path.h"
#include "client/formats/formats.h"
#include "client/formats/near_names.h"
#include "proto/util.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DATASET_CHARS 4096

char *dataset_path_normalise(const char *rest)
{
    size_t n = strlen(rest);
    char *dataset = malloc(n + 2), *out = dataset;
    if (!dataset)
        return NULL;
    for (const char *at = n ? rest + 1 : rest; *at;) {
        size_t part = strcspn(at, "/");
        bool is_dot = part == 1 && at[0] == '.';
        if (part > 0 && !is_dot) {
            *out++ = '/';
            memcpy(out, at, part);
            out += part;
        }
        at += part;
        if (*at == '/')
            at++;
    }
    *out = '\0';
    return dataset;
}

static int add_name(void *userdata, const struct gad_listed *entry)
{
    if (entry->kind == GAD_LISTED_ARRAY)
        near_names_add(userdata, entry->name);
    return 0;
}

static int no_name_error(const char *path, const char *whole, bool is_output,
                         struct gad_error *error)
{
    char list[NEAR_TEXT_BYTES];
    struct gad_error unread;
    struct near_names *names = calloc(1, sizeof(*names));
    error_set(error, GAD_BAD_ARGUMENT, whole,
              "a file of several arrays needs the name of one, as in %.200s:/name", path);
    if (names)
        names->wanted = "";
    /* What is there, as far as it can be read. */
    int r = names && !is_output ? format_list(path, add_name, names, &unread) : 0;
    if (r == 0 && names && names->n > 0)
        error_expected(error, "%s", near_names_text(names, list, sizeof(list)));
    else
        error_expected(error, "a name");
    error_found(error, "no name");
    free(names);
    return GAD_BAD_ARGUMENT;
}

int dataset_path_parse(const char *rest, const char *whole, bool is_output, struct spec *spec,
                       struct gad_error *error)
{
    if (strlen(rest) > MAX_DATASET_CHARS)
        return error_set(error, GAD_BAD_ARGUMENT, whole, "the dataset's path is too long");
    spec->dataset = dataset_path_normalise(rest);
    if (!spec->dataset)
        return error_from_errno(error, ENOMEM, whole, "spec");
    return *spec->dataset ? 0 : no_name_error(spec->path, whole, is_output, error);
}
