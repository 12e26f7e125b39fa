/* Charts: a frame with axes, marks and grid, curves in it, a legend above with the most that each
 * curve reached.
 *
 *     title                     -- broker, at most 4.2 MB  -- worker cpu, at most 38 MB
 *     40 MB +------------------------------------------------+
 *           |             ______                             |
 *     20 MB + - - - - - -/- - - \- - - - - - - - - - - - - - +
 *           |___________/        \___________________________|
 *         0 +-----------+-----------+-----------+------------+
 *         14:00       14:05       14:10       14:15
 *
 * Axes of numbers begin at 0. Where nothing was measured the frame says so. Colours are told apart
 * by people who see few of them, too (those of Okabe and Ito).
 */
#include "client/ctl/picture/chart.h"
#include "client/picture/svg.h"

#include <math.h>
#include <stdlib.h>

#define WIDTH        960.0
#define LEFT         84.0
#define RIGHT        24.0
#define HEAD         58.0
#define CHART_HEIGHT 150.0
#define CHART_HEAD   26.0
#define LEGEND_LINE  15.0
#define CHART_FOOT   34.0
#define PLOT_WIDTH   (WIDTH - LEFT - RIGHT)
#define TEXT         12.0
#define SMALL        11.0
#define MOST_MARKS   5u
#define MOST_TIMES   9u
#define DARK         "#222222"
#define GREY         "#666666"
#define GRID         "#dddddd"
#define GAP          14.0 /* between entries of the legend */
#define SWATCH       18.0

static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#000000"};
#define N_COLOURS (sizeof(colours) / sizeof(colours[0]))

struct frame { /* of one chart */
    FILE *file;
    const struct chart_page *page;
    const struct chart *chart;
    double top, most; /* of the plot; the number at its upper edge */
    struct svg_point *points;
};

static double most_of(const struct chart_curve *curve, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (curve->values[i] > most && isfinite(curve->values[i]))
            most = curve->values[i];
    return most;
}

static double x_of(const struct frame *f, double time)
{
    double span = f->page->last - f->page->first;
    return LEFT + (span > 0 ? (time - f->page->first) / span * PLOT_WIDTH : 0);
}

static double y_of(const struct frame *f, double value)
{
    return f->top + CHART_HEIGHT * (1 - value / f->most);
}

static void draw_numbers(const struct frame *f, double step)
{
    char label[AXIS_LABEL_SIZE];
    for (unsigned i = 0; i * step <= f->most * (1 + 1e-9); i++) {
        double y = y_of(f, i * step);
        svg_line(f->file, (struct svg_point){LEFT, y}, (struct svg_point){WIDTH - RIGHT, y}, GRID);
        svg_text(f->file, (struct svg_point){LEFT - 8, y + 4}, SVG_END, SMALL, GREY,
                 axis_label(i * step, f->most, f->chart->unit, label));
    }
}

static void draw_times(const struct frame *f)
{
    const struct chart_page *page = f->page;
    double bottom = f->top + CHART_HEIGHT;
    double step = axis_time_step(page->last - page->first, MOST_TIMES);
    double first = axis_first_time(page->first, step, page->clock_s);
    char label[AXIS_LABEL_SIZE];
    for (unsigned i = 0; i <= 2 * MOST_TIMES && first + i * step <= page->last; i++) {
        double x = x_of(f, first + i * step);
        svg_line(f->file, (struct svg_point){x, f->top}, (struct svg_point){x, bottom}, GRID);
        svg_line(f->file, (struct svg_point){x, bottom}, (struct svg_point){x, bottom + 4}, GREY);
        svg_text(f->file, (struct svg_point){x, bottom + 17}, SVG_MIDDLE, SMALL, GREY,
                 axis_time_label(first + i * step, step, page->clock_s, label));
    }
    svg_line(f->file, (struct svg_point){LEFT, f->top}, (struct svg_point){LEFT, bottom}, GREY);
    svg_line(f->file, (struct svg_point){LEFT, bottom}, (struct svg_point){WIDTH - RIGHT, bottom},
             GREY);
}

/* The points of a curve from i on, up to the next gap; how many. */
static size_t take_points(const struct frame *f, const struct chart_curve *curve, size_t *i)
{
    const struct chart_page *page = f->page;
    size_t n = 0;
    while (*i < page->n_times && !isfinite(curve->values[*i]))
        (*i)++;
    for (; *i < page->n_times && isfinite(curve->values[*i]); (*i)++) {
        double time = page->times[*i];
        if (time >= page->first && time <= page->last)
            f->points[n++] = (struct svg_point){x_of(f, time), y_of(f, curve->values[*i])};
    }
    return n;
}

static void draw_curve(const struct frame *f, unsigned index)
{
    const struct chart_curve *curve = &f->chart->curves[index];
    const char *colour = colours[index % N_COLOURS];
    for (size_t i = 0; i < f->page->n_times;) {
        size_t n = take_points(f, curve, &i);
        if (curve->is_filled)
            svg_area(f->file, f->points, n, f->top + CHART_HEIGHT, colour, 0.15);
        svg_curve(f->file, f->points, n, colour, curve->is_dashed ? "5 4" : "");
    }
}

/* Entries that do not fit a line go on the next one. Returns the lines; file NULL: only counts. */
static unsigned draw_legend(const struct frame *f, FILE *file, double y)
{
    double x = LEFT + svg_text_width(f->chart->title, TEXT) + 3 * GAP;
    unsigned n_lines = 1;
    for (unsigned i = 0; i < f->chart->n_curves; i++) {
        const struct chart_curve *curve = &f->chart->curves[i];
        double most = most_of(curve, f->page->n_times);
        char label[AXIS_LABEL_SIZE], text[128];
        snprintf(text, sizeof(text), "%s, at most %s", curve->name,
                 axis_label(most, most, f->chart->unit, label));
        double width = SWATCH + 6 + svg_text_width(text, SMALL);
        if (x + width > WIDTH - RIGHT && x > LEFT) {
            x = LEFT;
            n_lines++;
        }
        if (file) {
            double line_y = y + (n_lines - 1) * LEGEND_LINE;
            svg_rectangle(file, (struct svg_point){x, line_y - 5}, SWATCH, 3,
                          colours[i % N_COLOURS], 1);
            svg_text(file, (struct svg_point){x + SWATCH + 6, line_y}, SVG_START, SMALL, DARK,
                     text);
        }
        x += width + GAP;
    }
    return n_lines;
}

static void draw_chart(struct frame *f, double title_y)
{
    double most = 0;
    for (unsigned i = 0; i < f->chart->n_curves; i++)
        most = fmax(most, most_of(&f->chart->curves[i], f->page->n_times));
    double step = axis_step(most, MOST_MARKS, f->chart->unit);
    f->most = most > 0 ? ceil(most / step * (1 - 1e-9)) * step : step;
    svg_text(f->file, (struct svg_point){LEFT, title_y}, SVG_START, TEXT, DARK, f->chart->title);
    draw_legend(f, f->file, title_y);
    draw_numbers(f, step);
    draw_times(f);
    if (f->page->n_times == 0)
        svg_text(f->file, (struct svg_point){LEFT + PLOT_WIDTH / 2, f->top + CHART_HEIGHT / 2},
                 SVG_MIDDLE, TEXT, GREY, "nothing was measured in this time");
    for (unsigned i = 0; i < f->chart->n_curves; i++)
        draw_curve(f, i);
}

/* From the lower edge of the chart above to that of the next one's title. */
static double head_of(struct frame *f, unsigned i)
{
    f->chart = &f->page->charts[i];
    return CHART_HEAD + (draw_legend(f, NULL, 0) - 1) * LEGEND_LINE;
}

void chart_write_page(FILE *file, const struct chart_page *page)
{
    struct frame frame = {.file = file, .page = page};
    double height = HEAD;
    for (unsigned i = 0; i < page->n_charts; i++)
        height += head_of(&frame, i) + CHART_HEIGHT + CHART_FOOT;
    frame.points = calloc(page->n_times + 1, sizeof(*frame.points));
    svg_begin(file, WIDTH, height, page->title);
    svg_text(file, (struct svg_point){LEFT, 24}, SVG_START, 16, DARK, page->title);
    svg_text(file, (struct svg_point){LEFT, 43}, SVG_START, SMALL, GREY, page->subtitle);
    double y = HEAD;
    for (unsigned i = 0; i < page->n_charts && frame.points; i++) {
        frame.top = y + head_of(&frame, i);
        draw_chart(&frame, y + CHART_HEAD - 9);
        y = frame.top + CHART_HEIGHT + CHART_FOOT;
    }
    svg_end(file);
    free(frame.points);
}
