/* Pictures of arrays: which part is shown, how large, where to. The array is read once. Called by
 * show.c.
 */
#include "client/ctl/picture/picture.h"
#include "client/ctl/picture/half_blocks.h"
#include "client/ctl/picture/preview.h"

#include "proto/text.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static error_t read_when(const char *text, enum picture_when *ret, const struct argp_state *state)
{
    static const char *const words[] = {"auto", "always", "never"};
    for (unsigned i = 0; i < 3; i++) {
        if (text && strcmp(words[i], text) != 0)
            continue;
        *ret = text ? (enum picture_when)i : PICTURE_ALWAYS;
        return 0;
    }
    return ctl_usage_error(state, "--picture takes auto, always or never, not '%s'", text);
}

error_t picture_parse(int key, char *arg, struct picture_options *options, struct argp_state *state)
{
    switch (key) {
    case CTL_OPTION_PICTURE: return read_when(arg, &options->when, state);
    case CTL_OPTION_FAST: options->is_fast = true; return 0;
    case CTL_OPTION_COLOURS:
        if (colour_map_of(arg) < 0)
            return ctl_usage_error(state, "--colours takes viridis, magma or grey, not '%s'", arg);
        options->map = (enum colour_map)colour_map_of(arg);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* "Zonal wind [m s-1]" */
static void print_meaning(const struct gad_meaning *meaning)
{
    char name[256], units[128];
    snprintf(name, sizeof(name), "%s", meaning && meaning->long_name ? meaning->long_name : "");
    snprintf(units, sizeof(units), "%s", meaning && meaning->units ? meaning->units : "");
    text_make_printable(name);
    text_make_printable(units);
    if (name[0] && units[0])
        printf("%s [%s]\n", name, units);
    else if (name[0] || units[0])
        printf(name[0] ? "%s\n" : "[%s]\n", name[0] ? name : units);
    if (meaning && meaning->is_unpacked)
        printf("masked and scaled by %s\n", meaning->packing);
}

void picture_print_head(const char *source, const struct gad_array_info *info,
                        const struct gad_meaning *meaning, uint64_t n_elements)
{
    char shape[256];
    printf("%s  %s  %s %s  %llu elements\n", source, info->format, gad_dtype_name(info->dtype),
           ctl_format_shape(info->ndim, info->shape, shape, sizeof(shape)),
           (unsigned long long)n_elements);
    print_meaning(meaning);
}

bool picture_is_wanted(const struct picture_options *options, const struct gad_array_info *info)
{
    struct gad_error ignored = {0};
    if (options->when != PICTURE_AUTO)
        return options->when == PICTURE_ALWAYS;
    return isatty(STDOUT_FILENO) && !preview_check(info, &ignored);
}

/* "[0, 0], each cell the mean of 2 x 2 elements"; "" where the picture is the array. */
static char *caption(const struct gad_array_info *info, const struct preview *p, char *buffer,
                     size_t n_bytes)
{
    size_t used = 0;
    buffer[0] = '\0';
    for (int i = 0; i < info->ndim - 2 && used < n_bytes; i++)
        used += (size_t)snprintf(buffer + used, n_bytes - used, "%s0", i ? ", " : "of [");
    if (used > 0 && used < n_bytes)
        used += (size_t)snprintf(buffer + used, n_bytes - used, "]");
    if (used < n_bytes && p->row_step * p->column_step > 1) {
        const char *comma = used > 0 ? ", " : "", *how = p->is_fast ? "one" : "the mean";
        if (p->is_line)
            snprintf(buffer + used, n_bytes - used, "%seach column %s of %" PRId64 " elements",
                     comma, p->is_fast ? "one" : "least, mean and greatest", p->column_step);
        else
            snprintf(buffer + used, n_bytes - used,
                     "%seach cell %s of %" PRId64 " x %" PRId64 " elements", comma, how,
                     p->row_step, p->column_step);
    }
    return buffer;
}

static uint64_t count(const struct gad_array_info *info)
{
    uint64_t n = 1;
    for (int i = 0; i < info->ndim; i++)
        n *= (uint64_t)info->shape[i];
    return n;
}

int picture_draw(struct gad_client *client, const char *source, struct gad_array *array,
                 const struct gad_array_info *info, const struct picture_options *options,
                 struct gad_error *error)
{
    const struct gad_meaning *meaning = gad_array_meaning(array);
    struct half_blocks_terminal terminal = half_blocks_terminal();
    struct preview_options limits = {.is_fast = options->is_fast};
    struct preview preview;
    char text[192], units[128];
    half_blocks_limits(&terminal, info->ndim == 1, &limits);
    int r = preview_read(client, array, info, &limits, &preview, error);
    if (!r) {
        snprintf(units, sizeof(units), "%s", meaning && meaning->units ? meaning->units : "");
        text_make_printable(units);
        picture_print_head(source, info, meaning, count(info));
        if (caption(info, &preview, text, sizeof(text))[0])
            puts(text);
        half_blocks_draw(stdout, &terminal, &preview, options->map, units);
    }
    preview_deinit(&preview);
    return r;
}
