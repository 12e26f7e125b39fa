/* Pictures of arrays: which part is shown, how large, where to. The array is read once. Called by
 * show.c.
 */
#include "client/ctl/picture/picture.h"
#include "client/ctl/picture/half_blocks.h"
#include "client/ctl/picture/preview.h"
#include "client/ctl/stats/stats.h"
#include "client/picture/colours.h"

#include "proto/text.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
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
        options->map = (enum gad_colours)colour_map_of(arg);
        return 0;
    case CTL_OPTION_PNG: options->png_path = arg; return 0;
    case CTL_OPTION_SVG: options->svg_path = arg; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

bool picture_is_filed(const struct picture_options *options)
{
    return options->png_path || options->svg_path;
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
    if (picture_is_filed(options))
        return true;
    if (options->when != PICTURE_AUTO)
        return options->when == PICTURE_ALWAYS;
    return isatty(STDOUT_FILENO) && !preview_check(info, &ignored);
}

/* "[0, 0], each cell the mean of 2 x 2 elements"; "" where the picture is the array. */
static char *caption(const struct gad_array_info *info, const struct preview *p, char *buffer,
                     size_t n_bytes)
{
    const struct gad_picture *cells = &p->picture;
    size_t used = 0;
    buffer[0] = '\0';
    for (int i = 0; i < info->ndim - 2 && used < n_bytes; i++)
        used += (size_t)snprintf(buffer + used, n_bytes - used, "%s0", i ? ", " : "of [");
    if (used > 0 && used < n_bytes)
        used += (size_t)snprintf(buffer + used, n_bytes - used, "]");
    if (used < n_bytes && cells->row_step * cells->column_step > 1) {
        const char *comma = used > 0 ? ", " : "", *how = p->is_fast ? "one" : "the mean";
        if (cells->is_line)
            snprintf(buffer + used, n_bytes - used, "%seach column %s of %" PRId64 " elements",
                     comma, p->is_fast ? "one" : "least, mean and greatest", cells->column_step);
        else
            snprintf(buffer + used, n_bytes - used,
                     "%seach cell %s of %" PRId64 " x %" PRId64 " elements", comma, how,
                     cells->row_step, cells->column_step);
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

/* Everything that is said of a picture. */
struct texts {
    char source[256], caption[192], title[256], subtitle[384], units[128], names[2][64];
};

static const char *name_of_axis(const struct gad_array_info *info,
                                const struct gad_meaning *meaning, int from_end, char *buffer,
                                size_t n_bytes)
{
    int axis = info->ndim - from_end;
    const char *name =
        meaning && meaning->dimensions && axis >= 0 ? meaning->dimensions[axis] : NULL;
    snprintf(buffer, n_bytes, "%s", name ? name : "");
    text_make_printable(buffer);
    return buffer;
}

static void say(const struct gad_array_info *info, const struct gad_meaning *meaning,
                const char *source, const struct preview *p, struct texts *t)
{
    char shape[128];
    const char *long_name = meaning ? meaning->long_name : NULL;
    caption(info, p, t->caption, sizeof(t->caption));
    snprintf(t->units, sizeof(t->units), "%s", meaning && meaning->units ? meaning->units : "");
    snprintf(t->source, sizeof(t->source), "%s", source);
    snprintf(t->title, sizeof(t->title), "%s", long_name ? long_name : source);
    text_make_printable(t->units);
    text_make_printable(t->source);
    text_make_printable(t->title);
    snprintf(t->subtitle, sizeof(t->subtitle), "%.120s%s%s %s%s%s", long_name ? t->source : "",
             long_name ? ": " : "", gad_dtype_name(info->dtype),
             ctl_format_shape(info->ndim, info->shape, shape, sizeof(shape)),
             t->caption[0] ? ", " : "", t->caption);
}

typedef enum gad_status draw_fn(const struct gad_picture *picture, void **ret_file,
                                size_t *ret_n_bytes, struct gad_error *error);

static int write_file(const char *path, draw_fn *draw, const struct gad_picture *picture,
                      struct gad_error *error)
{
    void *data = NULL;
    size_t n;
    if (!path)
        return 0;
    int r = (int)draw(picture, &data, &n, error);
    if (!r)
        r = stats_replace_file(path, data, n, error);
    free(data);
    return r;
}

static int write_files(const struct picture_options *o, const struct gad_array_info *info,
                       const struct gad_meaning *meaning, struct gad_picture *p, struct texts *t,
                       struct gad_error *error)
{
    p->title = t->title;
    p->subtitle = t->subtitle;
    p->row_name = name_of_axis(info, meaning, 2, t->names[0], sizeof(t->names[0]));
    p->column_name = name_of_axis(info, meaning, 1, t->names[1], sizeof(t->names[1]));
    int r = write_file(o->png_path, gad_picture_png, p, error);
    return r ? r : write_file(o->svg_path, gad_picture_svg, p, error);
}

/* Before an array is read that may be large: whether a file could be written there. */
static int check_path(const char *path, struct gad_error *error)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    char folder[PATH_MAX];
    struct stat there;
    if (!path)
        return 0;
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
        return error_from_errno(error, EISDIR, path, path);
    if (slash)
        snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return access(slash ? folder : ".", W_OK) == 0 ? 0 : error_from_errno(error, errno, path, path);
}

int picture_draw(struct gad_client *client, const char *source, struct gad_array *array,
                 const struct gad_array_info *info, const struct picture_options *options,
                 struct gad_error *error)
{
    const struct gad_meaning *meaning = gad_array_meaning(array);
    struct half_blocks_terminal terminal = half_blocks_terminal();
    struct preview_options limits = {.is_fast = options->is_fast};
    struct preview preview = {.numbers = NULL};
    struct texts texts;
    half_blocks_limits(&terminal, info->ndim == 1, &limits);
    if (picture_is_filed(options)) {
        limits.most_rows = GAD_PICTURE_ROWS;
        limits.most_columns = GAD_PICTURE_COLUMNS;
    }
    int r = check_path(options->png_path, error);
    if (!r)
        r = check_path(options->svg_path, error);
    if (!r)
        r = preview_read(client, array, info, &limits, &preview, error);
    if (!r) {
        say(info, meaning, source, &preview, &texts);
        preview.picture.colours = options->map;
        preview.picture.units = texts.units;
        if (picture_is_filed(options)) {
            r = write_files(options, info, meaning, &preview.picture, &texts, error);
        } else {
            picture_print_head(source, info, meaning, count(info));
            if (texts.caption[0])
                puts(texts.caption);
            half_blocks_draw(stdout, &terminal, &preview.picture);
        }
    }
    preview_deinit(&preview);
    return r;
}
