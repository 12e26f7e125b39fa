/* Sources of a command line: opened as --mask-and-scale and --no-mask-and-scale say.
 *
 * Whoever says neither and reads an array whose file packs it, or names values that stand for
 * nothing measured, is told so on standard error, once for each source: numbers that look right and
 * are not would be worse.
 */
#include "client/ctl/ctl.h"

#include <string.h>

bool ctl_parse_masking(int key, enum gad_masking *ret_masking)
{
    if (key != CTL_OPTION_MASK && key != CTL_OPTION_NO_MASK)
        return false;
    *ret_masking = key == CTL_OPTION_MASK ? GAD_MASK_AND_SCALE : GAD_AS_STORED;
    return true;
}

int ctl_open_source(struct gad_client *client, const char *spec, enum gad_masking masking,
                    struct gad_array **ret_array, struct gad_error *error)
{
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
