/* The progress of long work on standard error: on a terminal a bar, drawn in place; elsewhere, as
 * in the log of a batch job, a line every ten seconds.
 *
 *     [##########..........]  51%  4.41 GB of 8.59 GB  6.2 GB/s  1 s left
 */
#include "client/ctl/ctl.h"
#include "client/ctl/stats/stats.h"

#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define LINE_S 10 /* between lines */

double ctl_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void ctl_progress_begin(struct ctl_progress *progress, bool is_quiet)
{
    *progress = (struct ctl_progress){
        .is_shown = !is_quiet,
        .is_bar = isatty(STDERR_FILENO),
        .began_s = ctl_now_s(),
    };
    progress->told_s = progress->began_s;
}

static int terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

/* Whole seconds, while they are few. */
static const char *format_left(double seconds, char buffer[16])
{
    if (seconds >= 100)
        return stats_format_time(seconds, buffer);
    snprintf(buffer, 16, "%.0f s", seconds);
    return buffer;
}

/* " 51%  4.41 GB of 8.59 GB  6.2 GB/s  1 s left" */
static void write_text(const struct ctl_progress *progress, const struct gad_progress *now,
                       double fraction, char *text, size_t n_bytes)
{
    double seconds = ctl_now_s() - progress->began_s;
    double done = (double)now->read_bytes + (double)now->write_bytes;
    double rate = seconds > 0 ? done / seconds : 0;
    double left = fraction > 0 ? seconds * (1 - fraction) / fraction : 0;
    char done_text[32], total_text[32], rate_text[32], left_text[32] = "", time[16];
    if (fraction > 0)
        snprintf(left_text, sizeof(left_text), "  %s left", format_left(left, time));
    snprintf(
        text, n_bytes, " %3.0f%%  %s of %s  %s/s%s", fraction * 100,
        ctl_format_bytes(done, done_text),
        ctl_format_bytes(now->total_bytes ? (double)now->total_bytes : done / fraction, total_text),
        ctl_format_bytes(rate, rate_text), left_text);
}

static void draw_bar(double fraction, const char *text)
{
    char bar[64];
    int columns = terminal_columns() - 3;
    int width = columns - (int)strlen(text);
    width = width > 40 ? 40 : width < 0 ? 0 : width;
    for (int i = 0; i < width; i++)
        bar[i] = i < fraction * width ? '#' : '.';
    bar[width] = '\0';
    fprintf(stderr, "\r\033[K[%s]%.*s", bar, columns > 0 ? columns : 0, text);
}

static bool is_due(const struct ctl_progress *progress)
{
    return progress->is_shown && (progress->is_bar || ctl_now_s() - progress->told_s >= LINE_S);
}

static void put(struct ctl_progress *progress, double fraction, const char *text)
{
    if (progress->is_bar)
        draw_bar(fraction, text);
    else
        fprintf(stderr, "gpuarrayctl:%s\n", text);
    fflush(stderr);
    progress->told_s = ctl_now_s();
    progress->has_drawn = progress->is_bar;
}

void ctl_progress_draw(void *data, const struct gad_progress *now)
{
    struct ctl_progress *progress = data;
    char text[160];
    if (now->n_tiles == 0 || !is_due(progress))
        return;
    double fraction = (double)now->tiles_done / (double)now->n_tiles;
    write_text(progress, now, fraction, text, sizeof(text));
    put(progress, fraction, text);
}

void ctl_progress_count(struct ctl_progress *progress, uint64_t n_done, uint64_t n, double left_s,
                        const char *text)
{
    char all[192], left[40] = "", time[16];
    double seconds = ctl_now_s() - progress->began_s;
    if (!is_due(progress))
        return;
    if (left_s < 0 && n_done > 0)
        left_s = seconds * (double)(n - n_done) / (double)n_done;
    if (left_s >= 0)
        snprintf(left, sizeof(left), "  %s left", format_left(left_s, time));
    snprintf(all, sizeof(all), " %s%s", text, left);
    put(progress, (double)n_done / (double)n, all);
}

void ctl_progress_end(struct ctl_progress *progress)
{
    if (progress->has_drawn)
        fputs("\r\033[K", stderr);
    progress->has_drawn = false;
}
