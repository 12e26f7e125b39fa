/* Names of arrays in a file of several, as specs have them.
 *
 * Called through the rows of the formats whose files have several arrays.
 */
#include "client/formats/dataset_path.h"
#include "proto/util.h"

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

int dataset_path_parse(const char *rest, const char *whole, bool is_output, struct spec *spec,
                       struct gad_error *error)
{
    if (strlen(rest) > MAX_DATASET_CHARS)
        return error_set(error, GAD_BAD_ARGUMENT, whole, "the dataset's path is too long");
    spec->dataset = dataset_path_normalise(rest);
    if (!spec->dataset)
        return error_from_errno(error, ENOMEM, whole, "spec");
    if (*spec->dataset)
        return 0;
    return error_set(error, GAD_BAD_ARGUMENT, whole,
                     "a file of several arrays needs the name of one, as in %s:/name", spec->path);
}
