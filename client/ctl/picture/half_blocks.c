/* Pictures in a terminal, of half blocks: U+2580 has the upper pixel's colour as its own and the
 * lower one's as the background's. Where there are no colours or no UTF-8, a character is as dense
 * as its upper pixel is large.
 *
 *     1.25 ▄▄▄▄▄▄▄▄▄▄ 25.6  M/S, grey: NaN
 *
 * Called by show.c.
 */
#include "client/ctl/picture/half_blocks.h"
#include "client/picture/colours.h"
#include "client/picture/scale.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define OTHER_LINES  5u /* of the text, the scale and the prompt */
#define LINE_PIXELS  24u
#define MOST_ZOOM    8u
#define SCALE_CELLS  24u
#define MOST_COLUMNS 1000u

static const char ramp[] = " .:-=+*#%@";

struct shown {
    const struct gad_picture *of;
    struct scale scale;
};

struct pixel {
    bool is_drawn;
    struct colour colour;
    char character;
};

/* The terminal --------------------------------------------------------------------------------- */

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && value[0];
}

static enum half_blocks_kind kind_of_terminal(void)
{
    const char *term = getenv("TERM"), *colours = getenv("COLORTERM");
    setlocale(LC_CTYPE, "");
    if (is_set("NO_COLOR") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0 || !term ||
        strcmp(term, "dumb") == 0)
        return HALF_BLOCKS_ASCII;
    bool is_true = colours && (strcmp(colours, "truecolor") == 0 || strcmp(colours, "24bit") == 0);
    return is_true ? HALF_BLOCKS_TRUE : HALF_BLOCKS_256;
}

struct half_blocks_terminal half_blocks_terminal(void)
{
    struct winsize size;
    struct half_blocks_terminal found = {kind_of_terminal(), 80, 24};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        found.n_columns = size.ws_col < MOST_COLUMNS ? size.ws_col : MOST_COLUMNS;
        found.n_lines = size.ws_row < MOST_COLUMNS ? size.ws_row : MOST_COLUMNS;
    }
    return found;
}

void half_blocks_limits(const struct half_blocks_terminal *terminal, bool is_line,
                        struct preview_options *ret)
{
    unsigned lines = terminal->n_lines > OTHER_LINES ? terminal->n_lines - OTHER_LINES : 1;
    ret->most_columns = terminal->n_columns;
    ret->most_rows = is_line ? 1 : 2 * lines;
}

/* Characters ----------------------------------------------------------------------------------- */

static void set_colour(FILE *file, enum half_blocks_kind kind, bool is_background,
                       struct colour colour)
{
    if (kind == HALF_BLOCKS_TRUE)
        fprintf(file, "\033[%d;2;%u;%u;%um", is_background ? 48 : 38, colour.red, colour.green,
                colour.blue);
    else
        fprintf(file, "\033[%d;5;%um", is_background ? 48 : 38, colour_of_terminal(colour));
}

static bool is_same(const struct pixel *a, const struct pixel *b)
{
    return a->is_drawn == b->is_drawn &&
           (!a->is_drawn || memcmp(&a->colour, &b->colour, sizeof(a->colour)) == 0);
}

static void put_character(FILE *file, enum half_blocks_kind kind, const struct pixel *upper,
                          const struct pixel *lower)
{
    if (!upper->is_drawn && !lower->is_drawn) {
        fputs("\033[0m ", file);
        return;
    }
    if (!upper->is_drawn || !lower->is_drawn)
        fputs("\033[0m", file);
    else
        set_colour(file, kind, true, lower->colour);
    set_colour(file, kind, false, upper->is_drawn ? upper->colour : lower->colour);
    fputs(upper->is_drawn ? "\xe2\x96\x80" : "\xe2\x96\x84", file);
}

/* A line of two rows of pixels; lower NULL: there is none. */
static void put_line(FILE *file, enum half_blocks_kind kind, unsigned n, const struct pixel *upper,
                     const struct pixel *lower)
{
    static const struct pixel none = {.character = ' '};
    for (unsigned i = 0; i < n; i++) {
        const struct pixel *u = &upper[i], *l = lower ? &lower[i] : &none;
        const struct pixel *before_l = lower && i > 0 ? &lower[i - 1] : &none;
        if (kind == HALF_BLOCKS_ASCII)
            fputc(u->is_drawn ? u->character : l->character, file);
        else if (i > 0 && u->is_drawn && is_same(u, &upper[i - 1]) && is_same(l, before_l))
            fputs("\xe2\x96\x80", file); /* the colours are those of the character before */
        else
            put_character(file, kind, u, l);
    }
    fputs(kind == HALF_BLOCKS_ASCII ? "\n" : "\033[0m\n", file);
}

/* Pixels --------------------------------------------------------------------------------------- */

static struct pixel pixel_at(double place, enum gad_colours map)
{
    size_t n = sizeof(ramp) - 2;
    double at = fmin(fmax(place, 0), 1) * (double)n;
    return (struct pixel){true, colour_of(map, place),
                          isnan(place) ? '?' : ramp[(size_t)lround(at)]};
}

/* How many pixels a cell is high and wide: as many, where cells have as many elements. */
static void choose_zoom(const struct half_blocks_terminal *t, const struct shown *p,
                        unsigned *ret_rows, unsigned *ret_columns)
{
    struct preview_options most;
    half_blocks_limits(t, false, &most);
    unsigned rows = most.most_rows / p->of->n_rows, columns = most.most_columns / p->of->n_columns;
    if (p->of->is_even)
        rows = columns = rows < columns ? rows : columns;
    *ret_rows = rows < 1 ? 1 : rows > MOST_ZOOM ? MOST_ZOOM : rows;
    *ret_columns = columns < 1 ? 1 : columns > MOST_ZOOM ? MOST_ZOOM : columns;
}

static void draw_image(FILE *file, const struct half_blocks_terminal *t, const struct shown *p,
                       struct pixel *rows)
{
    unsigned high, wide;
    choose_zoom(t, p, &high, &wide);
    unsigned n = p->of->n_columns * wide, n_rows = p->of->n_rows * high;
    for (unsigned y = 0; y < n_rows; y++) {
        struct pixel *row = rows + (y % 2) * (size_t)n;
        const double *means = p->of->means + (size_t)(y / high) * p->of->n_columns;
        for (unsigned x = 0; x < n; x++)
            row[x] = pixel_at(scale_place(&p->scale, means[x / wide]), p->of->colours);
        if (y % 2 == 1)
            put_line(file, t->kind, n, rows, rows + n);
        else if (y + 1 == n_rows)
            put_line(file, t->kind, n, rows, NULL);
    }
}

/* How high a value is among n pixels, from below. */
static unsigned level_of(const struct shown *p, double value, unsigned n)
{
    return (unsigned)lround(fmin(fmax(scale_place(&p->scale, value), 0), 1) * (n - 1));
}

static struct pixel line_pixel(const struct shown *p, unsigned cell, unsigned level, unsigned n)
{
    struct pixel none = {.character = ' '};
    if (isnan(p->of->means[cell]))
        return level == 0 ? (struct pixel){true, COLOUR_NOTHING, '?'} : none;
    if (level == level_of(p, p->of->means[cell], n))
        return (struct pixel){true, colour_of(GAD_VIRIDIS, 0.85), '*'};
    if (level >= level_of(p, p->of->lows[cell], n) && level <= level_of(p, p->of->highs[cell], n))
        return (struct pixel){true, colour_of(GAD_VIRIDIS, 0.35), ':'};
    return none;
}

static void draw_line(FILE *file, const struct half_blocks_terminal *t, const struct shown *p,
                      struct pixel *rows)
{
    bool is_ascii = t->kind == HALF_BLOCKS_ASCII;
    struct preview_options most;
    half_blocks_limits(t, false, &most);
    unsigned n_rows = most.most_rows < LINE_PIXELS ? most.most_rows : LINE_PIXELS;
    unsigned zoom = t->n_columns / p->of->n_columns, n, step = is_ascii ? 1 : 2;
    n_rows /= is_ascii ? 2 : 1;
    zoom = zoom < 1 ? 1 : zoom > MOST_ZOOM ? MOST_ZOOM : zoom;
    n = p->of->n_columns * zoom;
    for (unsigned y = 0; y < n_rows; y += step) {
        for (unsigned i = 0; i < step; i++)
            for (unsigned x = 0; x < n; x++)
                rows[i * n + x] = line_pixel(p, x / zoom, n_rows - 1 - y - i, n_rows);
        put_line(file, t->kind, n, rows, is_ascii ? NULL : rows + n);
    }
}

/* The scale ------------------------------------------------------------------------------------ */

static void draw_scale(FILE *file, const struct half_blocks_terminal *t, const struct shown *p)
{
    const char *units = p->of->units;
    struct pixel cells[SCALE_CELLS];
    const char *comma = units && units[0] ? ", " : "  ";
    if (isnan(p->scale.least)) {
        fputs(p->scale.has_nothing ? "nothing but NaN and fill values\n" : "nothing finite\n",
              file);
        return;
    }
    fprintf(file, "%.6g ", p->scale.least);
    if (!p->of->is_line && p->scale.greatest > p->scale.least && t->n_columns > 2 * SCALE_CELLS) {
        for (unsigned i = 0; i < SCALE_CELLS; i++)
            cells[i] = pixel_at((double)i / (SCALE_CELLS - 1), p->of->colours);
        for (unsigned i = 0; i < SCALE_CELLS; i++) {
            if (t->kind == HALF_BLOCKS_ASCII)
                fputc(cells[i].character, file);
            else
                put_character(file, t->kind, &cells[i], &cells[i]);
        }
        fputs(t->kind == HALF_BLOCKS_ASCII ? "" : "\033[0m", file);
    } else {
        fputs("to", file);
    }
    fprintf(file, " %.6g", p->scale.greatest);
    if (units && units[0])
        fprintf(file, "  %s", units);
    if (p->scale.has_nothing)
        fprintf(file, "%s%s NaN or fill", comma, t->kind == HALF_BLOCKS_ASCII ? "?:" : "grey:");
    fputc('\n', file);
}

void half_blocks_draw(FILE *file, const struct half_blocks_terminal *terminal,
                      const struct gad_picture *picture)
{
    const struct shown shown = {picture, scale_of(picture)};
    size_t n = 2 * ((size_t)terminal->n_columns + picture->n_columns);
    struct pixel *rows = calloc(n, sizeof(*rows));
    if (!rows)
        return;
    if (picture->is_line)
        draw_line(file, terminal, &shown, rows);
    else
        draw_image(file, terminal, &shown, rows);
    draw_scale(file, terminal, &shown);
    free(rows);
}
