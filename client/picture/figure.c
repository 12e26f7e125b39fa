/* Figures: one layout, drawn with SVG's elements or with pixels.
 *
 *     title
 *     subtitle                        units
 *     rows  +-----------------------+ ##  25
 *        0  |                       | ##
 *           |         image         | ##  20
 *      100  |                       | ##
 *           +-----------------------+ ##  15
 *           0          100        200
 *                    columns
 *
 * An image in SVG is a PNG within it.
 */
#include "client/picture/axis.h"
#include "client/picture/raster.h"
#include "client/picture/scale.h"
#include "client/picture/svg.h"
#include "proto/error.h"
#include "proto/util.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCALE       2u /* pixels of PNG a unit */
#define LEFT        76.0
#define TOP         58.0
#define BOTTOM      46.0
#define RIGHT       110.0
#define BAR_GAP     16.0
#define BAR_WIDTH   14.0
#define LEAST_WIDTH 460.0
#define LINE_HEIGHT 270.0
#define SMALL       11.0
#define TITLE       13.0
#define MOST_MARKS  8u
#define MARK_SPACE  40.0

static const struct colour dark = {34, 34, 34}, pale = {221, 221, 221}, grey = {102, 102, 102};

struct canvas {
    const struct gad_picture *picture;
    struct scale scale;
    FILE *svg; /* NULL: the raster is drawn on */
    struct raster raster;
    double width, height; /* of the plot */
    bool has_failed;
};

static const char *text_of(const char *text)
{
    return text ? text : "";
}

/* On either ------------------------------------------------------------------------------------ */

static const char *hex_of(struct colour colour, char buffer[8])
{
    snprintf(buffer, 8, "#%02x%02x%02x", colour.red, colour.green, colour.blue);
    return buffer;
}

static void rectangle(struct canvas *c, double x, double y, double width, double height,
                      struct colour colour)
{
    char hex[8];
    if (c->svg)
        svg_rectangle(c->svg, (struct svg_point){x, y}, width, height, hex_of(colour, hex), 1);
    else
        raster_rectangle(&c->raster, (struct svg_point){x, y}, width, height, colour);
}

static double text_width(const struct canvas *c, const char *text, double size)
{
    return c->svg ? svg_text_width(text, size) : raster_text_width(text);
}

static void put_text(struct canvas *c, double x, double y, enum svg_anchor anchor, double size,
                     struct colour colour, const char *text)
{
    char hex[8];
    if (c->svg)
        svg_text(c->svg, (struct svg_point){x, y}, anchor, size, hex_of(colour, hex), text);
    else
        raster_text(&c->raster, (struct svg_point){x, y}, anchor, colour, text);
}

/* The end of a text that is too wide is left out, at a character. */
static void put_within(struct canvas *c, double x, double y, double width, double size,
                       struct colour colour, const char *text)
{
    char part[256];
    snprintf(part, sizeof(part), "%s", text);
    for (size_t n = strlen(part); n > 0 && text_width(c, part, size) > width;) {
        do
            n--;
        while (n > 0 && ((unsigned char)part[n] & 0xc0) == 0x80);
        part[n] = '\0';
    }
    put_text(c, x, y, SVG_START, size, colour, part);
}

static void image(struct canvas *c, double x, double y, double width, double height,
                  const struct colour *cells, unsigned n_columns, unsigned n_rows)
{
    size_t n;
    if (!c->svg) {
        raster_image(&c->raster, (struct svg_point){x, y}, width, height, cells, n_columns, n_rows);
        return;
    }
    _cleanup_free_ void *png = raster_png(cells, n_columns, n_rows, &n);
    if (png)
        svg_image(c->svg, (struct svg_point){x, y}, width, height, png, n);
    c->has_failed |= !png;
}

static void curve(struct canvas *c, const struct svg_point *points, size_t n, struct colour colour)
{
    char hex[8];
    if (c->svg)
        svg_curve(c->svg, points, n, hex_of(colour, hex), "");
    else
        raster_curve(&c->raster, points, n, colour);
}

/* Axes ----------------------------------------------------------------------------------------- */

static unsigned marks_in(double length)
{
    double n = length / MARK_SPACE;
    return n < 1 ? 1 : n > MOST_MARKS ? MOST_MARKS : (unsigned)n;
}

/* Numbers of elements, each at the middle of its element. */
static void draw_index_axis(struct canvas *c, bool is_row)
{
    const struct gad_picture *p = c->picture;
    double length = is_row ? c->height : c->width;
    double n = (double)(is_row ? p->height : p->width);
    double n_shown = is_row ? (double)p->n_rows * (double)p->row_step
                            : (double)p->n_columns * (double)p->column_step;
    double step = axis_step(n, marks_in(is_row ? length : length / 2), AXIS_NUMBER);
    char label[AXIS_LABEL_SIZE];
    for (double at = 0; at < n; at += step) {
        double place = (at + 0.5) / n_shown * length;
        axis_label(at, n, AXIS_NUMBER, label);
        if (is_row) {
            rectangle(c, LEFT - 5, TOP + place - 0.5, 5, 1, grey);
            put_text(c, LEFT - 8, TOP + place + 4, SVG_END, SMALL, grey, label);
        } else {
            rectangle(c, LEFT + place - 0.5, TOP + c->height, 1, 5, grey);
            put_text(c, LEFT + place, TOP + c->height + 17, SVG_MIDDLE, SMALL, grey, label);
        }
    }
}

/* Marks of the numbers along a side that is as high as the plot; `x`: where labels begin or end. */
static void draw_number_axis(struct canvas *c, double x, enum svg_anchor anchor, double grid_width)
{
    const struct scale *s = &c->scale;
    double span = s->greatest - s->least;
    char label[AXIS_LABEL_SIZE];
    if (isnan(s->least))
        return;
    if (!(span > 0) || isinf(span)) {
        snprintf(label, sizeof(label), "%.6g", s->greatest);
        put_text(c, x, TOP + (isinf(span) ? 4 : c->height / 2 + 4), anchor, SMALL, dark, label);
        snprintf(label, sizeof(label), "%.6g", s->least);
        if (isinf(span))
            put_text(c, x, TOP + c->height, anchor, SMALL, dark, label);
        return;
    }
    double step = axis_step(span, marks_in(c->height), AXIS_BYTES);
    double first = ceil(s->least / step - 1e-9);
    for (unsigned i = 0; i <= MOST_MARKS && (first + i) * step <= s->greatest + span * 1e-9; i++) {
        double value = (first + i) * step;
        double y = TOP + c->height * (1 - (value - s->least) / span);
        snprintf(label, sizeof(label), "%.6g", value);
        put_text(c, x, y + 4, anchor, SMALL, dark, label);
        rectangle(c, anchor == SVG_END ? LEFT - 5 : x - 6, y - 0.5, 4, 1, grey);
        if (grid_width > 0)
            rectangle(c, LEFT, y - 0.5, grid_width, 1, pale);
    }
}

static void draw_frame(struct canvas *c)
{
    rectangle(c, LEFT - 1, TOP - 1, c->width + 2, 1, grey);
    rectangle(c, LEFT - 1, TOP + c->height, c->width + 2, 1, grey);
    rectangle(c, LEFT - 1, TOP, 1, c->height, grey);
    rectangle(c, LEFT + c->width, TOP, 1, c->height, grey);
}

/* Plots ---------------------------------------------------------------------------------------- */

static void draw_bar(struct canvas *c)
{
    struct colour cells[COLOUR_STEPS];
    double x = LEFT + c->width + BAR_GAP;
    for (unsigned i = 0; i < COLOUR_STEPS; i++)
        cells[i] = colour_of_step(c->picture->colours, COLOUR_STEPS - 1 - i);
    image(c, x, TOP, BAR_WIDTH, c->height, cells, 1, COLOUR_STEPS);
    draw_number_axis(c, x + BAR_WIDTH + 7, SVG_START, 0);
    put_text(c, x, TOP - 8, SVG_START, SMALL, dark, text_of(c->picture->units));
    if (!c->scale.has_nothing)
        return;
    rectangle(c, x, TOP + c->height + 10, BAR_WIDTH, 8, COLOUR_NOTHING);
    put_text(c, x + BAR_WIDTH + 7, TOP + c->height + 18, SVG_START, SMALL, dark, "NaN or fill");
}

/* For free(); NULL: memory is short. */
static struct colour *cells_of(const struct canvas *c)
{
    const struct gad_picture *p = c->picture;
    size_t n = (size_t)p->n_rows * p->n_columns;
    struct colour *cells = malloc(n * sizeof(*cells)), steps[COLOUR_STEPS];
    for (unsigned i = 0; i < COLOUR_STEPS; i++)
        steps[i] = colour_of_step(p->colours, i);
    for (size_t i = 0; cells && i < n; i++) {
        double place = scale_place(&c->scale, p->means[i]);
        cells[i] =
            isnan(place) ? COLOUR_NOTHING : steps[(unsigned)(place * (COLOUR_STEPS - 1) + 0.5)];
    }
    return cells;
}

static void draw_image(struct canvas *c)
{
    const struct gad_picture *p = c->picture;
    _cleanup_free_ struct colour *cells = cells_of(c);
    if (!cells) {
        c->has_failed = true;
        return;
    }
    image(c, LEFT, TOP, c->width, c->height, cells, p->n_columns, p->n_rows);
    draw_frame(c);
    draw_index_axis(c, true);
    draw_bar(c);
    put_text(c, LEFT - 8, TOP - 8, SVG_END, SMALL, dark, text_of(p->row_name));
}

static double y_of(const struct canvas *c, double value)
{
    double place = scale_place(&c->scale, value);
    return TOP + c->height * (1 - fmin(fmax(place, 0), 1));
}

static void draw_line(struct canvas *c)
{
    const struct gad_picture *p = c->picture;
    double cell = c->width / p->n_columns;
    _cleanup_free_ struct svg_point *points = calloc(p->n_columns, sizeof(*points));
    size_t n = 0;
    draw_number_axis(c, LEFT - 8, SVG_END, c->width);
    for (unsigned i = 0; i < p->n_columns && p->column_step > 1; i++)
        if (!isnan(p->means[i]))
            rectangle(c, LEFT + i * cell, y_of(c, p->highs[i]), cell,
                      y_of(c, p->lows[i]) - y_of(c, p->highs[i]), colour_of(GAD_VIRIDIS, 0.7));
    for (unsigned i = 0; i <= p->n_columns && points; i++) {
        if (i < p->n_columns && !isnan(p->means[i])) {
            points[n++] = (struct svg_point){LEFT + (i + 0.5) * cell, y_of(c, p->means[i])};
        } else {
            curve(c, points, n, colour_of(GAD_VIRIDIS, 0.25));
            n = 0;
        }
    }
    c->has_failed |= !points;
    draw_frame(c);
    put_text(c, LEFT, TOP - 8, SVG_START, SMALL, dark, text_of(c->picture->units));
}

/* Cells are squares where they have as many elements along both axes. */
static void choose_size(struct canvas *c)
{
    const struct gad_picture *p = c->picture;
    unsigned wide = (unsigned)GAD_PICTURE_COLUMNS / p->n_columns,
             high = (unsigned)GAD_PICTURE_ROWS / p->n_rows;
    if (p->is_even)
        wide = high = wide < high ? wide : high;
    c->width = (double)p->n_columns * wide / SCALE;
    c->height = p->is_line ? LINE_HEIGHT : (double)p->n_rows * high / SCALE;
}

static void draw(struct canvas *c, double page_width)
{
    const struct gad_picture *p = c->picture;
    put_within(c, LEFT, 20, page_width - LEFT - 8, TITLE, dark, text_of(p->title));
    put_within(c, LEFT, 36, page_width - LEFT - 8, SMALL, grey, text_of(p->subtitle));
    if (p->is_line)
        draw_line(c);
    else
        draw_image(c);
    draw_index_axis(c, false);
    put_text(c, LEFT + c->width / 2, TOP + c->height + 34, SVG_MIDDLE, SMALL, dark,
             text_of(p->column_name));
}

static double page_width(const struct canvas *c)
{
    return fmax(LEFT + c->width + (c->picture->is_line ? BAR_GAP : RIGHT), LEAST_WIDTH);
}

/* Files ---------------------------------------------------------------------------------------- */

static bool is_cut(int64_t n, int64_t step, unsigned n_cells)
{
    return n > 0 && step > 0 && n / step + (n % step > 0) == n_cells;
}

static int check(const struct gad_picture *p, void **ret_file, const size_t *ret_n_bytes,
                 struct gad_error *error)
{
    const char *why = NULL, *expected = "";
    if (!p || !ret_file || !ret_n_bytes || p->size != sizeof(*p)) {
        why = "a pointer is NULL, or size is not the struct's";
        expected = "size = sizeof(struct gad_picture)";
    } else if (!p->means || !p->lows != !p->is_line || !p->highs != !p->is_line) {
        why = "numbers are missing, or too many";
        expected = "means, and lows and highs of lines alone";
    } else if (p->n_rows > GAD_PICTURE_ROWS || p->n_columns > GAD_PICTURE_COLUMNS) {
        why = "there are too many cells";
        expected = "GAD_PICTURE_ROWS and GAD_PICTURE_COLUMNS, or fewer";
    } else if (!is_cut(p->height, p->row_step, p->n_rows) ||
               !is_cut(p->width, p->column_step, p->n_columns) || (p->is_line && p->height != 1)) {
        why = "the cells are not those of the array in such steps";
        expected = "height / row_step rows and width / column_step columns, rounded up";
    } else if (p->colours < GAD_VIRIDIS || p->colours > GAD_GREY) {
        why = "there are no such colours";
        expected = "GAD_VIRIDIS, GAD_MAGMA or GAD_GREY";
    }
    if (!why)
        return 0;
    error_set(error, GAD_BAD_ARGUMENT, "picture", "a picture: %s", why);
    error_expected(error, "%s", expected);
    if (p)
        error_found(error, "%u x %u cells of %" PRId64 " x %" PRId64 " elements", p->n_rows,
                    p->n_columns, p->height, p->width);
    return GAD_BAD_ARGUMENT;
}

static void *draw_svg(const struct gad_picture *picture, size_t *ret_n_bytes)
{
    char *text = NULL;
    struct canvas c = {
        .picture = picture, .scale = scale_of(picture), .svg = open_memstream(&text, ret_n_bytes)};
    if (!c.svg)
        return NULL;
    choose_size(&c);
    svg_begin(c.svg, page_width(&c), TOP + c.height + BOTTOM, text_of(picture->title));
    draw(&c, page_width(&c));
    svg_end(c.svg);
    c.has_failed |= ferror(c.svg) != 0;
    c.has_failed |= fclose(c.svg) != 0;
    if (!c.has_failed)
        return text;
    free(text);
    return NULL;
}

static void *draw_png(const struct gad_picture *picture, size_t *ret_n_bytes)
{
    struct canvas c = {.picture = picture, .scale = scale_of(picture)};
    void *png = NULL;
    choose_size(&c);
    raster_init(&c.raster, page_width(&c), TOP + c.height + BOTTOM, SCALE);
    draw(&c, page_width(&c));
    if (c.raster.pixels && !c.has_failed)
        png = raster_png(c.raster.pixels, c.raster.width, c.raster.height, ret_n_bytes);
    raster_deinit(&c.raster);
    return png;
}

typedef void *draw_fn(const struct gad_picture *picture, size_t *ret_n_bytes);

static enum gad_status make(const struct gad_picture *picture, draw_fn *draw_it, void **ret_file,
                            size_t *ret_n_bytes, struct gad_error *error)
{
    size_t n = 0;
    int r = check(picture, ret_file, ret_n_bytes, error);
    if (r)
        return (enum gad_status)r;
    void *file = draw_it(picture, &n);
    if (!file)
        return (enum gad_status)error_set(error, GAD_NO_MEMORY, "picture",
                                          "no memory for the picture");
    *ret_file = file;
    *ret_n_bytes = n;
    return GAD_OK;
}

enum gad_status gad_picture_png(const struct gad_picture *picture, void **ret_file,
                                size_t *ret_n_bytes, struct gad_error *error)
{
    return make(picture, draw_png, ret_file, ret_n_bytes, error);
}

enum gad_status gad_picture_svg(const struct gad_picture *picture, void **ret_file,
                                size_t *ret_n_bytes, struct gad_error *error)
{
    return make(picture, draw_svg, ret_file, ret_n_bytes, error);
}
