/* Sources of a command line: opened as --mask-and-scale and --no-mask-and-scale say; "-" is
 * standard input, as a stream for verbs that read their source once and in order, else whole, in a
 * file without a name.
 *
 * Whoever says neither and reads an array whose file packs it, or names values that stand for
 * nothing measured, is told so on standard error, once for each source: numbers that look right and
 * are not would be worse.
 */
#include "client/ctl/ctl.h"

#include "proto/error.h"

#include <string.h>
#include <unistd.h>

bool ctl_parse_masking(int key, enum gad_masking *ret_masking)
{
    if (key != CTL_OPTION_MASK && key != CTL_OPTION_NO_MASK)
        return false;
    *ret_masking = key == CTL_OPTION_MASK ? GAD_MASK_AND_SCALE : GAD_AS_STORED;
    return true;
}

bool ctl_is_pipe(const char *word)
{
    return word && word[0] == '-' && (word[1] == '\0' || word[1] == ':');
}

int ctl_open_pipe(struct gad_client *client, const char *word, struct gad_stream **ret_stream,
                  struct gad_error *error)
{
    const char *name = "standard input";
    return (int)(word[1]
                     ? gad_stream_read_raw(client, STDIN_FILENO, word + 2, name, ret_stream, error)
                     : gad_stream_read_npy(client, STDIN_FILENO, name, ret_stream, error));
}

/* It comes once, and so for one source. */
static int open_whole_pipe(struct gad_client *client, const char *word,
                           struct gad_array **ret_array, struct gad_error *error)
{
    static bool has_come;
    if (has_come) {
        error_set(error, GAD_BAD_ARGUMENT, word,
                  "standard input has one array, and is named twice");
        error_expected(error, "files for the others");
        error_found(error, "%.60s again", word);
        return GAD_BAD_ARGUMENT;
    }
    has_come = true;
    return (int)gad_array_from_pipe(client, STDIN_FILENO, word[1] ? word + 2 : NULL,
                                    "standard input", ret_array, error);
}

int ctl_open_source(struct gad_client *client, const char *spec, enum gad_masking masking,
                    struct gad_array **ret_array, struct gad_error *error)
{
    if (ctl_is_pipe(spec))
        return open_whole_pipe(client, spec, ret_array, error);
    const struct gad_open_options options = {.masking = masking};
    return (int)gad_array_open_as(client, spec, &options, ret_array, error);
}

void ctl_warn_packed(const char *spec, struct gad_array *array)
{
    const struct gad_meaning *meaning = gad_array_meaning(array);
    if (meaning && meaning->is_unsaid)
        fprintf(stderr,
                "gpuarrayctl: warning: %s has %s; its elements are taken as they are stored. "
                "--mask-and-scale takes them as they are meant, --no-mask-and-scale as stored "
                "without this warning\n",
                spec, meaning->packing);
}

void ctl_warn_packed_sources(unsigned n, const char *const *specs, struct gad_array *const *arrays)
{
    for (unsigned i = 0; i < n; i++) {
        bool is_told = !specs[i] || !arrays[i];
        for (unsigned j = 0; j < i && !is_told; j++)
            is_told = specs[j] && strcmp(specs[i], specs[j]) == 0;
        if (!is_told)
            ctl_warn_packed(specs[i], arrays[i]);
    }
}
