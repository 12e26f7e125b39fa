/* The terminal, by ncurses: nothing else of the command line draws.
 *
 * The terminal is given back whatever ends the program: q, a signal, a terminal that has gone.
 * Signals are blocked but while ppoll() waits, so that none is missed between looking at the flag
 * and going to sleep; the window's own signal (SIGWINCH) stays ncurses', which then gives
 * KEY_RESIZE. newterm() instead of initscr(), since initscr() ends the program where the terminal
 * is not known.
 */
#include "client/ctl/stats/top.h"

#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
    volatile sig_atomic_t was_signalled;
    sigset_t while_waiting;
    SCREEN *screen;
} state;

static void on_signal(int number)
{
    (void)number;
    state.was_signalled = 1;
}

void top_signals_watch(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t blocked;
    sigemptyset(&action.sa_mask);
    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        sigaction(numbers[i], &action, NULL);
        sigaddset(&blocked, numbers[i]);
    }
    sigprocmask(SIG_BLOCK, &blocked, &state.while_waiting);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigdelset(&state.while_waiting, numbers[i]);
}

bool top_signals_seen(void)
{
    return state.was_signalled != 0;
}

static struct timespec as_timespec(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    return time;
}

bool top_signals_sleep(double seconds)
{
    double end = ctl_now_s() + seconds;
    for (double left = seconds; left > 0 && !top_signals_seen(); left = end - ctl_now_s()) {
        struct timespec time = as_timespec(left);
        (void)ppoll(NULL, 0, &time, &state.while_waiting);
    }
    return !top_signals_seen();
}

bool top_screen_open(void)
{
    if (!top_terminal_is_known())
        return false;
    state.screen = newterm(NULL, stdout, stdin);
    if (!state.screen)
        return false;
    set_term(state.screen);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    return true;
}

void top_screen_close(void)
{
    if (!state.screen)
        return;
    endwin();
    delscreen(state.screen);
    state.screen = NULL;
}

void top_screen_size(unsigned *ret_columns, unsigned *ret_n_lines)
{
    *ret_columns = (unsigned)COLS;
    *ret_n_lines = (unsigned)LINES;
}

void top_screen_draw(const struct top_page *page)
{
    static const chtype attributes[] = {[TOP_PLAIN] = A_NORMAL,
                                        [TOP_TITLE] = A_BOLD,
                                        [TOP_HEADER] = A_REVERSE,
                                        [TOP_MESSAGE] = A_BOLD};
    erase();
    for (size_t i = 0; i < page->n_lines && i < (size_t)LINES; i++) {
        const struct top_line *line = &page->lines[i];
        attrset((int)attributes[line->style]);
        mvaddstr((int)i, 0, line->text);
        if (line->style == TOP_HEADER) { /* over the whole width */
            int column = getcurx(stdscr);
            if (column > 0 && getcury(stdscr) == (int)i)
                mvhline((int)i, column, ' ' | A_REVERSE, COLS - column);
        }
    }
    attrset(A_NORMAL);
    refresh();
}

static enum top_key read_key(bool is_ready)
{
    int key = getch();
    switch (key) {
    case 'q':
    case 'Q': return TOP_KEY_QUIT;
    case ' ': return TOP_KEY_AGAIN;
    case KEY_RESIZE: return TOP_KEY_RESIZED;
    case 'L' & 0x1f: clearok(curscr, TRUE); return TOP_KEY_RESIZED;
    case ERR: return is_ready ? TOP_KEY_QUIT : TOP_KEY_NONE; /* readable, and nothing: it is over */
    default: return TOP_KEY_NONE;
    }
}

enum top_key top_screen_wait(double seconds)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    struct timespec time = as_timespec(seconds > 0 ? seconds : 0);
    if (top_signals_seen())
        return TOP_KEY_QUIT;
    int n = ppoll(&input, 1, &time, &state.while_waiting);
    if (top_signals_seen())
        return TOP_KEY_QUIT;
    return read_key(n > 0);
}
