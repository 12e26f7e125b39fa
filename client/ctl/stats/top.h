/* gpuarrayctl top: from the map of server.stats to lines of text to the screen. */
#pragma once

#include "client/ctl/stats/stats.h"

/* ---- top_snapshot.c: what one answer says. Rates are bytes a second, NaN where not known. */
struct top_user {
    uint32_t uid;
    char name[STATS_USER_SIZE];
    uint64_t n_sessions, n_running, n_queued, n_settling;
    uint64_t weight, read_bytes, write_bytes;
    double work_s, input_s, room_s, turn_s;
    double work_since_s; /* the answer before */
    double share;        /* of all users' of that; NaN: not known */
    double read_rate, write_rate;
};

struct top_job {
    uint64_t id;
    uint32_t uid;
    char user[STATS_USER_SIZE], state[16], stage[16], engine[16], label[64];
    uint64_t n_tiles_done, n_tiles, moved_bytes; /* read and written */
    double queued_s, running_s;
    double rate;
};

struct top_snapshot {
    char version[32];
    char engines[96]; /* ", cpu ready, cuda:0 absent" */
    double uptime_s;  /* of the daemon: the clock of rates */
    uint64_t n_running, n_queued, n_settling, n_done, n_failed, n_sessions;
    uint64_t read_bytes, write_bytes;
    double read_rate, write_rate;
    bool has_worker; /* the workers told the numbers of the next line, which are sums */
    uint64_t n_threads, n_busy, n_slots, n_lent;
    uint64_t n_carries, carry_bytes;
    struct top_user *users; /* the busiest first */
    struct top_job *jobs;   /* running, settling, queued, paused; each the oldest first */
    size_t n_users, n_jobs;
    uint64_t n_users_left_out, n_jobs_left_out;
};

/* NULL without memory. */
struct top_snapshot *top_snapshot_new(struct json_object *stats);
struct top_snapshot *top_snapshot_free(struct top_snapshot *s); /* NULL */
/* Fills the rates of `now` from an earlier one of the same daemon, or leaves them unknown; sorts.
 */
void top_snapshot_compare(struct top_snapshot *now, const struct top_snapshot *before);

/* ---- top_page.c: lines of at most so many columns */
#define TOP_MIN_COLUMNS 40u
#define TOP_MAX_COLUMNS 200u
#define TOP_LINE_BYTES  (4u * TOP_MAX_COLUMNS + 1)

enum top_style { TOP_PLAIN, TOP_TITLE, TOP_HEADER, TOP_MESSAGE };

struct top_line {
    enum top_style style;
    char text[TOP_LINE_BYTES];
};

struct top_page {
    struct top_line *lines;
    size_t n_lines;
};

struct top_frame {             /* what the page has to fit */
    unsigned columns, n_lines; /* n_lines 0: as many as it takes */
    const char *clock;         /* at the right of the first line; "": none */
    const char *message;       /* why the numbers are old; "": they are not */
};

/* snapshot NULL: nothing is known yet. False without memory. */
bool top_page_make(const struct top_snapshot *snapshot, const struct top_frame *frame,
                   struct top_page *ret_page);
void top_page_deinit(struct top_page *page);

/* Copies printable text of at most so many columns, in the locale's width of characters; what is
 * not printable becomes '?'. pad: with spaces up to the columns. Returns the columns used. */
unsigned top_fit(char *ret, size_t n_bytes, const char *text, unsigned columns, bool pad);
/* "1.2 GB/s", "-" for NaN. Returns `buffer`. */
char *top_format_rate(double rate, char buffer[40]);

/* ---- top_terminal.c */
bool top_terminal_is_known(void); /* by its name in $TERM */

/* ---- top_screen.c: the terminal */
enum top_key { TOP_KEY_NONE, TOP_KEY_QUIT, TOP_KEY_AGAIN, TOP_KEY_RESIZED };

/* False: the terminal is of a kind that cannot be drawn on. After true, top_screen_close(). */
bool top_screen_open(void);
void top_screen_close(void);
void top_screen_size(unsigned *ret_columns, unsigned *ret_n_lines);
void top_screen_draw(const struct top_page *page);
/* Waits for a key; a signal that was seen or a terminal that has gone is TOP_KEY_QUIT. */
enum top_key top_screen_wait(double seconds);
/* SIGINT, SIGTERM and SIGHUP set a flag from here on; they are let in only while waiting. */
void top_signals_watch(void);
bool top_signals_seen(void);
/* Sleeps, until a signal: then false. */
bool top_signals_sleep(double seconds);
