/* gpuarrayctl top: who uses the daemon, with which jobs, how fast, and who waits; again and again.
 *
 * On a terminal the page is drawn in place until q or a signal. With -n or --once, and where no
 * terminal is, pages are printed one after another as plain text. A daemon that is lost is waited
 * for: the old numbers stay, with the reason above them. No daemon is started to be looked at.
 */
#include "client/ctl/stats/top.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MS       2000 /* more is a daemon that hangs: keys must work meanwhile */
#define PLAIN_COLUMNS   80u
#define DEFAULT_DELAY_S 2.0

enum { OPTION_ONCE = 0x100 };

struct top_options {
    double delay_s;
    uint64_t n_pages; /* 0: without end */
    bool is_plain;
};

struct top {
    struct top_options options;
    struct gad_client *client;
    struct top_snapshot *now; /* the latest answer; NULL: none yet */
    struct gad_error error;   /* why there is no newer one; status 0: there is none to be had */
};

static const struct argp_option top_argp_options[] = {
    {"delay", 'd', "SECONDS", 0, "between two looks (2)", 0},
    {"count", 'n', "COUNT", 0, "print so many pages as plain text, then end", 0},
    {"once", OPTION_ONCE, NULL, 0, "the same as -n 1", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct top_options *o = state->input;
    char *end;
    switch (key) {
    case 'd':
        o->delay_s = strtod(arg, &end);
        if (end == arg || *end || !(o->delay_s >= 0.1) || o->delay_s > 3600)
            return ctl_usage_error(state, "a delay is 0.1 to 3600 seconds, not '%s'", arg);
        return 0;
    case 'n':
        errno = 0;
        o->n_pages = strtoull(arg, &end, 10);
        if (arg[0] < '0' || arg[0] > '9' || *end || errno || o->n_pages == 0)
            return ctl_usage_error(state, "a count is a number from 1, not '%s'", arg);
        o->is_plain = true;
        return 0;
    case OPTION_ONCE:
        o->n_pages = 1;
        o->is_plain = true;
        return 0;
    case ARGP_KEY_ARG: return ctl_usage_error(state, "'%s' is too much", arg);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp top_argp = {
    top_argp_options,
    parse_option,
    "",
    "Users, jobs, rates and waits of the daemon, refreshed in place.\v"
    "Keys: q ends, space looks at once, Ctrl-L draws anew. Rates are those between two looks: the "
    "first page has none.\n\n"
    "Examples:\n"
    "  gpuarrayctl top\n"
    "  gpuarrayctl top --delay 0.5\n"
    "  gpuarrayctl top -n 2 -d 10 | tail -20" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

/* A status; afterwards t->now is new, or t->error says why not. */
static int look(struct top *t)
{
    char *text = NULL;
    t->error = (struct gad_error){0};
    int r = (int)gad_stats_json(t->client, &text, &t->error);
    if (r)
        return r;
    struct json_object *stats = json_tokener_parse(text);
    struct top_snapshot *snapshot = stats ? top_snapshot_new(stats) : NULL;
    free(text);
    json_object_put(stats);
    if (!snapshot)
        return error_set(&t->error, GAD_NO_MEMORY, NULL, "no memory for the numbers");
    top_snapshot_compare(snapshot, t->now);
    top_snapshot_free(t->now);
    t->now = snapshot;
    return 0;
}

static bool make_page(const struct top *t, unsigned columns, unsigned n_lines,
                      struct top_page *ret_page)
{
    char clock[16] = "", message[480] = "";
    time_t seconds = time(NULL);
    struct tm local;
    if (localtime_r(&seconds, &local))
        strftime(clock, sizeof(clock), "%H:%M:%S", &local);
    if (t->error.status)
        snprintf(message, sizeof(message), "trying again: %s [%s]", t->error.message,
                 gad_status_word((int)t->error.status));
    const struct top_frame frame = {
        .columns = columns, .n_lines = n_lines, .clock = clock, .message = message};
    return top_page_make(t->now, &frame, ret_page);
}

/* On a terminal -------------------------------------------------------------------------------- */

static void draw(const struct top *t)
{
    struct top_page page;
    unsigned columns, n_lines;
    top_screen_size(&columns, &n_lines);
    if (!make_page(t, columns, n_lines, &page))
        return;
    top_screen_draw(&page);
    top_page_deinit(&page);
}

static int run_on_screen(struct top *t)
{
    double next_s = ctl_now_s();
    if (!top_screen_open()) {
        const char *name = getenv("TERM");
        error_set(&t->error, GAD_BAD_ARGUMENT, "TERM", "the terminal '%s' cannot be drawn on",
                  name ? name : "");
        return ctl_fail_hint(&t->error, "'gpuarrayctl top --once' prints plain text", false);
    }
    for (;;) {
        if (ctl_now_s() >= next_s) {
            (void)look(t); /* the page says what went wrong */
            next_s = ctl_now_s() + t->options.delay_s;
        }
        draw(t);
        enum top_key key = top_screen_wait(next_s - ctl_now_s());
        if (key == TOP_KEY_QUIT)
            break;
        if (key == TOP_KEY_AGAIN)
            next_s = 0;
    }
    top_screen_close();
    return top_signals_seen() ? EXIT_INTERRUPTED : EXIT_OK;
}

/* Plain text ----------------------------------------------------------------------------------- */

static unsigned plain_columns(void)
{
    const char *text = getenv("COLUMNS");
    long columns = text ? strtol(text, NULL, 10) : 0;
    return columns >= (long)TOP_MIN_COLUMNS && columns <= (long)TOP_MAX_COLUMNS ? (unsigned)columns
                                                                                : PLAIN_COLUMNS;
}

static int print_page(const struct top *t)
{
    struct top_page page;
    if (!make_page(t, plain_columns(), 0, &page))
        return GAD_NO_MEMORY;
    for (size_t i = 0; i < page.n_lines; i++)
        puts(page.lines[i].text);
    top_page_deinit(&page);
    return fflush(stdout) == 0 ? 0 : GAD_IO_ERROR;
}

static int run_plain(struct top *t)
{
    int r = 0;
    for (uint64_t i = 0; t->options.n_pages == 0 || i < t->options.n_pages; i++) {
        if (i > 0) {
            if (!top_signals_sleep(t->options.delay_s))
                return EXIT_INTERRUPTED;
            putchar('\n');
        }
        r = look(t);
        if (print_page(t))
            return EXIT_FAILED; /* nobody reads */
    }
    return r ? ctl_exit_code(r) : EXIT_OK;
}

int verb_top(int argc, char **argv)
{
    struct top t = {.options = {.delay_s = DEFAULT_DELAY_S}};
    struct gad_connect_options connect = {
        .client_name = "gpuarrayctl top", .no_private_daemon = true, .timeout_ms = ANSWER_MS};
    if (ctl_parse(&top_argp, argc, argv, &t.options))
        return EXIT_USAGE;
    setlocale(LC_CTYPE, "");
    if (gad_connect(&connect, &t.client, &t.error))
        return ctl_fail(&t.error, false);
    top_signals_watch();
    bool is_plain = t.options.is_plain || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO);
    int code = is_plain ? run_plain(&t) : run_on_screen(&t);
    top_snapshot_free(t.now);
    gad_close(t.client);
    return code;
}
