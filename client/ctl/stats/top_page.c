/* A page of top: three lines about the daemon, then users, then jobs.
 *
 *     gpuarrayd 0.1.0, up 3:12 h, cpu ready, 2/2 threads busy                   14:03:21
 *     1 running, 4 queued; 120 done, 3 failed or cancelled; 3 sessions
 *     read 1.2 GB/s, write 600 MB/s; 3 of 16 slots lent, 1 carry (4.19 MB)
 *     (a message, or nothing)
 *     USER ...
 *     (nothing)
 *     JOB ...
 *
 * INPUT, ROOM and TURN are how long jobs of a user waited for clients and disks, for memory of the
 * pool, and for others; STAGE is what a job is at, or waits for.
 *
 * Who settles counts as running. Everything fits 80 columns; a label takes what is left on its
 * line. Where lines are few, users get a third of them or what jobs leave, and a section that is
 * cut says by how much.
 *
 * Labels and names come from others: nothing of them reaches the terminal but printable characters.
 */
#include "client/ctl/stats/top.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define N_FIXED 7 /* lines beside those of users and jobs */

unsigned top_fit(char *ret, size_t n_bytes, const char *text, unsigned columns, bool pad)
{
    unsigned used = 0;
    size_t length = 0;
    mbstate_t state = {0};
    while (*text && used < columns) {
        wchar_t character;
        size_t n = mbrtowc(&character, text, strlen(text), &state);
        int width = n > 0 && n < (size_t)-2 ? wcwidth(character) : -1;
        bool is_good = width > 0;
        if (n == (size_t)-1 || n == (size_t)-2) {
            n = 1;
            state = (mbstate_t){0};
        }
        if (!is_good)
            width = 1;
        if (used + (unsigned)width > columns || length + (is_good ? n : 1) + 1 > n_bytes)
            break;
        if (is_good)
            memcpy(ret + length, text, n);
        else
            ret[length] = '?';
        length += is_good ? n : 1;
        used += (unsigned)width;
        text += n;
    }
    for (; pad && used < columns && length + 1 < n_bytes; used++)
        ret[length++] = ' ';
    ret[length] = '\0';
    return used;
}

char *top_format_rate(double rate, char buffer[40])
{
    char bytes[32];
    if (isnan(rate))
        snprintf(buffer, 40, "-");
    else
        snprintf(buffer, 40, "%s/s", ctl_format_bytes(rate, bytes));
    return buffer;
}

static void add(struct top_page *page, const struct top_frame *frame, enum top_style style,
                const char *text)
{
    struct top_line *line = &page->lines[page->n_lines++];
    line->style = style;
    top_fit(line->text, sizeof(line->text), text, frame->columns, false);
}

/* The daemon ----------------------------------------------------------------------------------- */

static void add_title(struct top_page *page, const struct top_snapshot *s,
                      const struct top_frame *frame)
{
    char left[160], fitted[TOP_LINE_BYTES], text[TOP_LINE_BYTES + 32], up[16];
    unsigned n_clock = (unsigned)strlen(frame->clock);
    int n = s ? snprintf(left, sizeof(left), "gpuarrayd %s, up %s%s", s->version,
                         stats_format_time(s->uptime_s, up), s->engines)
              : snprintf(left, sizeof(left), "gpuarrayd");
    if (s && s->has_worker && n > 0 && (size_t)n < sizeof(left))
        snprintf(left + n, sizeof(left) - (size_t)n, ", %" PRIu64 "/%" PRIu64 " threads busy",
                 s->n_busy, s->n_threads);
    unsigned room = frame->columns > n_clock + 1 ? frame->columns - n_clock - 1 : frame->columns;
    top_fit(fitted, sizeof(fitted), left, room, n_clock > 0);
    snprintf(text, sizeof(text), n_clock > 0 ? "%s %s" : "%s", fitted, frame->clock);
    add(page, frame, TOP_TITLE, text);
}

static void add_totals(struct top_page *page, const struct top_snapshot *s,
                       const struct top_frame *frame)
{
    char text[256], slots[64] = "", a[40], b[40], c[32];
    snprintf(text, sizeof(text),
             "%" PRIu64 " running, %" PRIu64 " queued; %" PRIu64 " done, %" PRIu64
             " failed or cancelled; %" PRIu64 " session%s",
             s->n_running + s->n_settling, s->n_queued, s->n_done, s->n_failed, s->n_sessions,
             s->n_sessions == 1 ? "" : "s");
    add(page, frame, TOP_PLAIN, text);
    if (s->has_worker)
        snprintf(slots, sizeof(slots), "%" PRIu64 " of %" PRIu64 " slots lent, ", s->n_lent,
                 s->n_slots);
    snprintf(text, sizeof(text), "read %s, write %s; %s%" PRIu64 " carr%s (%s)",
             top_format_rate(s->read_rate, a), top_format_rate(s->write_rate, b), slots,
             s->n_carries, s->n_carries == 1 ? "y" : "ies",
             ctl_format_bytes((double)s->carry_bytes, c));
    add(page, frame, TOP_PLAIN, text);
}

/* Users and jobs ------------------------------------------------------------------------------- */

static void add_user(struct top_page *page, const struct top_user *u, const struct top_frame *frame)
{
    char text[TOP_LINE_BYTES], name[80], share[16] = "-", a[40], b[40], input[16], room[16],
                                         turn[16];
    top_fit(name, sizeof(name), u->name, 11, true);
    if (!isnan(u->share))
        snprintf(share, sizeof(share), "%.0f%%", 100 * u->share);
    snprintf(text, sizeof(text),
             "%s %4" PRIu64 " %5s %4" PRIu64 " %5" PRIu64 " %10s %10s %7s %7s %7s", name, u->weight,
             share, u->n_running + u->n_settling, u->n_queued, top_format_rate(u->read_rate, a),
             top_format_rate(u->write_rate, b), stats_format_time(u->input_s, input),
             stats_format_time(u->room_s, room), stats_format_time(u->turn_s, turn));
    add(page, frame, TOP_PLAIN, text);
}

static void add_job(struct top_page *page, const struct top_job *j, const struct top_frame *frame)
{
    char text[TOP_LINE_BYTES], user[64], done[16] = "-", a[40], q[16], r[16] = "-";
    bool is_queued = strcmp(j->state, "queued") == 0;
    top_fit(user, sizeof(user), j->user, 8, true);
    if (!is_queued && j->n_tiles > 0) { /* else nobody knows how many there are */
        double part = (double)j->n_tiles_done / (double)j->n_tiles;
        snprintf(done, sizeof(done), "%.0f%%", floor(100 * (part < 1 ? part : 1)));
    }
    if (!is_queued)
        stats_format_time(j->running_s, r);
    snprintf(text, sizeof(text), "%12" PRIu64 " %s %-8.8s %-6.6s %4s %9s %7s %7s %s", j->id, user,
             j->stage, j->engine, done, top_format_rate(j->rate, a),
             stats_format_time(j->queued_s, q), r, j->label);
    add(page, frame, TOP_PLAIN, text);
}

static void add_more(struct top_page *page, const struct top_frame *frame, uint64_t n)
{
    char text[64];
    snprintf(text, sizeof(text), "... %" PRIu64 " more", n);
    add(page, frame, TOP_PLAIN, text);
}

static void add_users(struct top_page *page, const struct top_snapshot *s,
                      const struct top_frame *frame, size_t room)
{
    uint64_t n_all = s->n_users + s->n_users_left_out;
    size_t n = n_all <= room ? s->n_users : room > 0 ? room - 1 : 0;
    n = n < s->n_users ? n : s->n_users;
    add(page, frame, TOP_HEADER,
        "USER          WT SHARE  RUN QUEUE     READ/s    WRITE/s   INPUT    ROOM    TURN");
    for (size_t i = 0; i < n; i++)
        add_user(page, &s->users[i], frame);
    if (n < n_all && room > 0)
        add_more(page, frame, n_all - n);
}

static void add_jobs(struct top_page *page, const struct top_snapshot *s,
                     const struct top_frame *frame, size_t room)
{
    uint64_t n_all = s->n_jobs + s->n_jobs_left_out;
    size_t n = n_all <= room ? s->n_jobs : room > 0 ? room - 1 : 0;
    n = n < s->n_jobs ? n : s->n_jobs;
    add(page, frame, TOP_PLAIN, "");
    add(page, frame, TOP_HEADER,
        "         JOB USER     STAGE    ENGINE DONE      RATE  QUEUED RUNNING LABEL");
    for (size_t i = 0; i < n; i++)
        add_job(page, &s->jobs[i], frame);
    if (n < n_all && room > 0)
        add_more(page, frame, n_all - n);
}

static void add_sections(struct top_page *page, const struct top_snapshot *s,
                         const struct top_frame *frame)
{
    size_t n_users = s->n_users + (s->n_users_left_out > 0);
    size_t n_jobs = s->n_jobs + (s->n_jobs_left_out > 0);
    size_t room = frame->n_lines > N_FIXED ? frame->n_lines - N_FIXED : 0;
    if (frame->n_lines == 0)
        room = n_users + n_jobs + 2;
    size_t for_users = room > n_jobs ? room - n_jobs : 0;
    size_t least = room / 3 > 0 ? room / 3 : room > 1;
    if (for_users < least)
        for_users = least;
    if (for_users > n_users)
        for_users = n_users;
    add_users(page, s, frame, for_users);
    add_jobs(page, s, frame, room - for_users);
}

bool top_page_make(const struct top_snapshot *snapshot, const struct top_frame *frame,
                   struct top_page *ret_page)
{
    struct top_frame fitting = *frame;
    size_t n_rows = snapshot ? snapshot->n_users + snapshot->n_jobs + 2 : 0;
    struct top_page page = {.lines = calloc(N_FIXED + n_rows, sizeof(*page.lines))};
    if (!page.lines)
        return false;
    if (fitting.columns > TOP_MAX_COLUMNS)
        fitting.columns = TOP_MAX_COLUMNS;
    add_title(&page, snapshot, &fitting);
    if (snapshot)
        add_totals(&page, snapshot, &fitting);
    add(&page, &fitting, frame->message[0] ? TOP_MESSAGE : TOP_PLAIN, frame->message);
    if (snapshot)
        add_sections(&page, snapshot, &fitting);
    *ret_page = page;
    return true;
}

void top_page_deinit(struct top_page *page)
{
    free(page->lines);
    *page = (struct top_page){.n_lines = 0};
}
