/* The progress bar: one line on standard error, drawn in place.
 *
 *     [##########..........]  51%  4.41 GB of 8.59 GB  6.2 GB/s  1 s left
 */
#include "client/ctl/ctl.h"

#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

double ctl_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void ctl_progress_begin(struct ctl_progress *progress, bool is_quiet)
{
    *progress = (struct ctl_progress){
        .is_shown = !is_quiet && isatty(STDERR_FILENO),
        .began_s = ctl_now_s(),
    };
}

static int terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

void ctl_progress_draw(void *data, const struct gad_progress *now)
{
    struct ctl_progress *progress = data;
    if (!progress->is_shown || now->n_tiles == 0)
        return;
    double fraction = (double)now->tiles_done / (double)now->n_tiles;
    double seconds = ctl_now_s() - progress->began_s;
    double done = (double)now->read_bytes + (double)now->write_bytes;
    double rate = seconds > 0 ? done / seconds : 0;
    char done_text[32], total_text[32], rate_text[32], left_text[32] = "";
    if (fraction > 0)
        snprintf(left_text, sizeof(left_text), "  %.0f s left",
                 seconds * (1 - fraction) / fraction);
    char text[160];
    snprintf(
        text, sizeof(text), " %3.0f%%  %s of %s  %s/s%s", fraction * 100,
        ctl_format_bytes(done, done_text),
        ctl_format_bytes(now->total_bytes ? (double)now->total_bytes : done / fraction, total_text),
        ctl_format_bytes(rate, rate_text), left_text);
    char bar[64];
    int columns = terminal_columns() - 3;
    int width = columns - (int)strlen(text);
    width = width > 40 ? 40 : width < 0 ? 0 : width;
    for (int i = 0; i < width; i++)
        bar[i] = i < fraction * width ? '#' : '.';
    bar[width] = '\0';
    fprintf(stderr, "\r\033[K[%s]%.*s", bar, columns > 0 ? columns : 0, text);
    fflush(stderr);
    progress->has_drawn = true;
}

void ctl_progress_end(struct ctl_progress *progress)
{
    if (progress->has_drawn)
        fputs("\r\033[K", stderr);
    progress->has_drawn = false;
}
