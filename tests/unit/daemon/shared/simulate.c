/* A simulator of the worker's turns, for more people and longer than a machine can show.
 *
 * Threads take tiles of jobs as turns.h says, or by two other ways of sharing: first come, first
 * served (a job has the machine until it ends), and slices of 30 seconds in which one user has the
 * machine, round robin. Time is the simulation's own, tiles take what their jobs say.
 *
 *     simulate [DAYS [USERS [SEED]]]
 *
 * prints for each scenario and way: Jain's index of time over weight in ten seconds, of the users
 * who had work all the time (least and mean); what jobs of less than a second of work waited beside
 * it (median, 95th and 99th of 100); and how much of the threads' time was used while there was
 * work. In "pauses" users hold all that they have back for a while, and jobs end at deadlines.
 * Exits with 1 where our way is less fair than JAIN_LEAST, leaves a thread idle that had work, or
 * lets small jobs wait longer than either of the others.
 */
#include "daemon/turns.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_THREADS     2u
#define SLICE_SECONDS 30.0
#define WINDOW        10.0
#define SMALL_SECONDS 1.0
#define JAIN_LEAST    0.95
#define MAX_ACTIVE    4096u /* jobs that are there at a time */
#define MAX_USERS     10000u
#define N_SERIES      (1u << 20)

enum way { WAY_TURNS, WAY_FIFO, WAY_SLICES, N_WAYS };
static const char *const way_names[] = {"turns", "first come", "slices of 30 s"};

struct sim_job {
    struct turn_job turn;
    double arrival, seconds, tile_seconds, deadline; /* the last in the simulation's time */
    uint64_t n_left, n_running;                      /* tiles that nobody has, that threads have */
};

struct sim_user {
    struct turn_user turn;
    uint32_t weight;
    unsigned n_jobs;
    bool is_paused;       /* with all that it has */
    double served, since; /* in this window; when it last began to have work */
};

struct arrival {
    double at;
    uint32_t user;
    double seconds, tile_seconds, deadline; /* the last from then on */
};

struct pause { /* or its end */
    double at;
    uint32_t user;
    bool is_paused;
};

struct scenario {
    const char *name;
    unsigned n_users, n_arrivals;
    uint32_t *weights;
    struct arrival *arrivals; /* by time */
    struct pause *pauses;     /* likewise */
    unsigned n_pauses;
    double end; /* nobody looks beyond; 0: all jobs end */
};

struct thread {
    double free_at, seconds;
    int job; /* -1 */
};

struct sim {
    const struct scenario *of;
    enum way way;
    struct sim_user *users;
    struct sim_job jobs[MAX_ACTIVE];
    struct turn_job turns[MAX_ACTIVE];
    struct turn_user active[MAX_USERS];
    unsigned n_jobs, next_arrival, next_pause;
    double next_deadline; /* of all jobs, about */
    struct thread threads[N_THREADS];
    double now, window_end, busy;
    uint64_t n_wasted; /* times that a thread found nothing although a job was ready */
    uint32_t slice_user;
    double slice_end;
    double jain_least, jain_sum;
    unsigned n_jain, n_waits;
    double *waits;
};

static uint64_t random_state;

static double draw(void) /* splitmix64, in (0, 1) */
{
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return ((double)((z ^ z >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

static bool is_ready(const struct sim *s, const struct sim_job *job)
{
    return job->n_left > 0 && !s->users[job->turn.user].is_paused;
}

/* Ways -------------------------------------------------------------------------------------- */

static unsigned list_active(struct sim *s)
{
    unsigned n = 0;
    for (unsigned i = 0; i < s->n_jobs; i++) {
        struct sim_user *user = &s->users[s->jobs[i].turn.user];
        unsigned k = 0;
        s->turns[i] = s->jobs[i].turn;
        s->turns[i].is_ready = is_ready(s, &s->jobs[i]);
        while (k < n && s->active[k].user != user->turn.user)
            k++;
        if (k == n)
            s->active[n++] = user->turn;
    }
    return n;
}

static int next_by_turns(struct sim *s)
{
    unsigned n_active = list_active(s);
    int next = turns_next(s->turns, s->n_jobs, s->active, n_active);
    if (next >= 0)
        turns_level_kinds(&s->users[s->turns[next].user].turn, s->turns, s->n_jobs,
                          &s->turns[next]);
    return next;
}

/* The first that came, of this user, or of all. */
static int first_of(const struct sim *s, bool is_of_user, uint32_t user)
{
    int best = -1;
    for (unsigned i = 0; i < s->n_jobs; i++)
        if (is_ready(s, &s->jobs[i]) && (!is_of_user || s->jobs[i].turn.user == user) &&
            (best < 0 || s->jobs[i].arrival < s->jobs[best].arrival))
            best = (int)i;
    return best;
}

static int next_by_slices(struct sim *s)
{
    int next = s->now < s->slice_end ? first_of(s, true, s->slice_user) : -1;
    for (uint32_t k = 1; next < 0 && k <= s->of->n_users; k++) {
        uint32_t user = (s->slice_user + k) % s->of->n_users;
        if (s->users[user].n_jobs == 0 || (next = first_of(s, true, user)) < 0)
            continue;
        s->slice_user = user;
        s->slice_end = s->now + SLICE_SECONDS * s->users[user].weight;
    }
    return next;
}

static int next_job(struct sim *s)
{
    switch (s->way) {
    case WAY_TURNS: return next_by_turns(s);
    case WAY_FIFO: return first_of(s, false, 0);
    default: return next_by_slices(s);
    }
}

/* Events ------------------------------------------------------------------------------------ */

/* By size: each kind has eight times the work of the one before. */
static unsigned kind_of(double seconds)
{
    unsigned kind = 0;
    for (double most = 0.1; kind + 1 < TURN_N_KINDS && seconds > most; most *= 8)
        kind++;
    return kind;
}

static void arrive(struct sim *s, const struct arrival *a, uint64_t order)
{
    struct sim_user *user = &s->users[a->user];
    assert(s->n_jobs < MAX_ACTIVE);
    s->next_deadline = fmin(s->next_deadline, a->at + a->deadline);
    if (user->n_jobs++ == 0) {
        unsigned n_active = list_active(s);
        turns_enter(&user->turn, s->active, n_active);
        user->since = a->at;
    }
    s->jobs[s->n_jobs++] = (struct sim_job){.turn = {.user = a->user,
                                                     .weight = user->weight,
                                                     .kind = kind_of(a->seconds),
                                                     .order = order},
                                            .arrival = a->at,
                                            .seconds = a->seconds,
                                            .tile_seconds = a->tile_seconds,
                                            .deadline = a->at + a->deadline,
                                            .n_left = (uint64_t)ceil(a->seconds / a->tile_seconds)};
}

static void end_job(struct sim *s, unsigned i)
{
    struct sim_job *job = &s->jobs[i];
    s->users[job->turn.user].n_jobs--;
    for (unsigned t = 0; t < N_THREADS; t++) /* the last one takes its place */
        if (s->threads[t].job == (int)s->n_jobs - 1)
            s->threads[t].job = (int)i;
    s->jobs[i] = s->jobs[--s->n_jobs];
}

static void finish_tile(struct sim *s, struct thread *t)
{
    struct sim_job *job = &s->jobs[t->job];
    struct sim_user *user = &s->users[job->turn.user];
    turns_charge(&user->turn, user->weight, t->seconds);
    turns_charge_kind(&user->turn, job->turn.kind, t->seconds);
    user->served += t->seconds;
    s->busy += t->seconds;
    job->n_running--;
    unsigned i = (unsigned)t->job;
    t->job = -1;
    if (job->n_left + job->n_running > 0)
        return;
    if (job->seconds < SMALL_SECONDS && s->n_waits < N_SERIES)
        s->waits[s->n_waits++] = fmax(s->now - job->arrival - job->seconds, 0);
    end_job(s, i);
}

/* Jain's index, (sum x)^2 / (n sum x^2), of the users who had work all through the window. */
static void close_window(struct sim *s)
{
    double sum = 0, squares = 0;
    unsigned n = 0;
    for (uint32_t i = 0; i < s->of->n_users; i++) {
        struct sim_user *user = &s->users[i];
        double x = user->served / user->weight;
        if (user->n_jobs > 0 && !user->is_paused && user->since <= s->window_end - WINDOW) {
            sum += x;
            squares += x * x;
            n++;
        }
        user->served = 0;
    }
    s->window_end += WINDOW;
    if (n < 2)
        return;
    double index = squares > 0 ? sum * sum / (n * squares) : 1;
    s->jain_least = fmin(s->jain_least, index);
    s->jain_sum += index;
    s->n_jain++;
}

/* Those that end a tile before those that look for one at the same time. */
static struct thread *next_thread(struct sim *s)
{
    struct thread *next = &s->threads[0];
    for (unsigned i = 1; i < N_THREADS; i++) {
        struct thread *t = &s->threads[i];
        if (t->free_at < next->free_at ||
            (t->free_at <= next->free_at && t->job >= 0 && next->job < 0))
            next = t;
    }
    return next;
}

/* Until the next arrival, or another thread's end where that is what it waits for. */
static void stay_idle(struct sim *s, struct thread *t)
{
    double until = INFINITY;
    if (s->next_arrival < s->of->n_arrivals)
        until = s->of->arrivals[s->next_arrival].at;
    if (s->next_pause < s->of->n_pauses)
        until = fmin(until, s->of->pauses[s->next_pause].at);
    for (unsigned i = 0; i < N_THREADS; i++)
        if (s->threads[i].job >= 0)
            until = fmin(until, s->threads[i].free_at);
    t->free_at = until;
}

static void start_tile(struct sim *s, struct thread *t)
{
    int next = next_job(s);
    unsigned n_ready = 0;
    for (unsigned i = 0; i < s->n_jobs; i++)
        n_ready += is_ready(s, &s->jobs[i]);
    if (next < 0) {
        s->n_wasted += n_ready > 0;
        stay_idle(s, t);
        return;
    }
    struct sim_job *job = &s->jobs[next];
    job->n_left--;
    job->n_running++;
    t->job = next;
    t->seconds = job->tile_seconds;
    t->free_at = s->now + t->seconds;
}

static void change_pauses(struct sim *s)
{
    for (; s->next_pause < s->of->n_pauses && s->of->pauses[s->next_pause].at <= s->now;
         s->next_pause++) {
        const struct pause *p = &s->of->pauses[s->next_pause];
        struct sim_user *user = &s->users[p->user];
        unsigned n_active = list_active(s);
        user->is_paused = p->is_paused;
        if (p->is_paused)
            turns_go_away(&user->turn, s->active, n_active);
        else
            turns_come_back(&user->turn, s->active, n_active);
        user->since = s->now;
    }
}

/* What is late begins no tile any more. */
static void end_late(struct sim *s)
{
    double next = INFINITY;
    if (s->now < s->next_deadline)
        return;
    for (unsigned i = s->n_jobs; i-- > 0;) {
        struct sim_job *job = &s->jobs[i];
        if (job->deadline > s->now) {
            next = fmin(next, job->deadline);
            continue;
        }
        job->n_left = 0;
        if (job->n_running == 0)
            end_job(s, i);
    }
    s->next_deadline = next;
}

static void run(struct sim *s)
{
    for (;;) {
        struct thread *t = next_thread(s);
        if (t->free_at == INFINITY || (s->of->end > 0 && t->free_at > s->of->end))
            return;
        s->now = t->free_at;
        while (s->next_arrival < s->of->n_arrivals &&
               s->of->arrivals[s->next_arrival].at <= s->now) {
            arrive(s, &s->of->arrivals[s->next_arrival], s->next_arrival);
            s->next_arrival++;
        }
        change_pauses(s);
        while (s->now >= s->window_end)
            close_window(s);
        if (t->job >= 0)
            finish_tile(s, t);
        end_late(s);
        start_tile(s, t);
    }
}

/* Scenarios --------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const struct arrival *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static void add(struct scenario *of, double at, uint32_t user, double seconds)
{
    of->arrivals[of->n_arrivals++] =
        (struct arrival){.at = at,
                         .user = user,
                         .seconds = seconds,
                         .deadline = INFINITY,
                         .tile_seconds = fmin(seconds, 0.02 + 0.08 * draw())};
}

static void make(struct scenario *of, const char *name, unsigned n_users, unsigned n_arrivals)
{
    *of = (struct scenario){.name = name, .n_users = n_users};
    of->weights = calloc(n_users, sizeof(*of->weights));
    of->arrivals = calloc(n_arrivals, sizeof(*of->arrivals));
    assert(of->weights && of->arrivals);
    for (unsigned i = 0; i < n_users; i++)
        of->weights[i] = 1;
}

/* Eight users who always have work: 1, 2, 4 ... jobs at a time; and one who has a small job now and
 * then. */
static void make_greedy(struct scenario *of, const char *name, bool has_weights)
{
    make(of, name, 9, 8 * 128 + 1000);
    of->end = 400;
    for (uint32_t user = 0; user < 8; user++) {
        unsigned n_jobs = 1u << (user < 7 ? user : 6);
        of->weights[user] = has_weights ? 1u << user % 3 : 1;
        for (unsigned i = 0; i < n_jobs; i++)
            add(of, 0.01 * draw(), user, 2 * of->end / n_jobs + 1);
    }
    for (double at = 1; at < of->end - 20; at -= log(draw()))
        add(of, at, 8, 0.001 + 0.02 * draw());
    qsort(of->arrivals, of->n_arrivals, sizeof(*of->arrivals), by_time);
}

static int by_pause_time(const void *a, const void *b)
{
    const struct pause *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* As before; half of the eight pause everything for a while, again and again, and some of their
 * jobs have deadlines, which others come after. */
static void make_paused(struct scenario *of)
{
    make_greedy(of, "pauses", true);
    of->pauses = calloc(1000, sizeof(*of->pauses));
    assert(of->pauses);
    for (uint32_t user = 0; user < 8; user += 2)
        for (double at = 20 + 30 * draw(); at < of->end - 100; at += 30 + 60 * draw()) {
            of->pauses[of->n_pauses++] = (struct pause){at, user, true};
            at += 10 + 80 * draw();
            of->pauses[of->n_pauses++] = (struct pause){at, user, false};
        }
    qsort(of->pauses, of->n_pauses, sizeof(*of->pauses), by_pause_time);
    for (unsigned i = 0; i < of->n_arrivals; i++)
        if (of->arrivals[i].user % 4 == 3 && draw() < 0.5)
            of->arrivals[i].deadline = 50 + 300 * draw();
}

/* Days of people: most jobs are small, a few are a thousand times as large, some come in bursts;
 * together 0.8 of what the threads can do. */
static void make_days(struct scenario *of, double days, unsigned n_users)
{
    double end = days * 86400, load = 0, most = 0.8 * end * N_THREADS;
    unsigned n_room = 4000000;
    make(of, "days", n_users, n_room);
    while (load < most && of->n_arrivals + 64 < n_room) {
        double at = end * draw(),
               seconds = exp(log(1.0) + 2.2 * sqrt(-2 * log(draw())) * cos(6.283185307 * draw()));
        uint32_t user = (uint32_t)(draw() * draw() * n_users);
        unsigned n_jobs = draw() < 0.02 ? 1 + (unsigned)(60 * draw()) : 1;
        seconds = fmin(fmax(seconds, 0.001), 3000);
        for (unsigned i = 0; i < n_jobs; i++, load += seconds)
            add(of, at, user, seconds);
    }
    qsort(of->arrivals, of->n_arrivals, sizeof(*of->arrivals), by_time);
}

/* Results ----------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

struct outcome {
    double jain_least, jain_mean, median, p95, p99, seconds;
    uint64_t n_wasted;
};

static double part(const double *values, unsigned n, double share)
{
    return n ? values[(unsigned)(share * (n - 1))] : INFINITY; /* none has ended */
}

static struct outcome simulate(const struct scenario *of, enum way way)
{
    struct sim *s = calloc(1, sizeof(*s));
    assert(s);
    s->users = calloc(of->n_users, sizeof(*s->users));
    s->waits = calloc(N_SERIES, sizeof(*s->waits));
    assert(s->users && s->waits);
    s->of = of;
    s->way = way;
    s->window_end = WINDOW;
    s->jain_least = 1;
    for (uint32_t i = 0; i < of->n_users; i++) {
        s->users[i].turn.user = i;
        s->users[i].weight = of->weights[i];
    }
    for (unsigned i = 0; i < N_THREADS; i++)
        s->threads[i].job = -1;
    run(s);
    qsort(s->waits, s->n_waits, sizeof(*s->waits), by_value);
    struct outcome o = {.jain_least = s->jain_least,
                        .jain_mean = s->n_jain ? s->jain_sum / s->n_jain : 1,
                        .median = part(s->waits, s->n_waits, 0.5),
                        .p95 = part(s->waits, s->n_waits, 0.95),
                        .p99 = part(s->waits, s->n_waits, 0.99),
                        .seconds = s->busy,
                        .n_wasted = s->n_wasted};
    printf("%-8s %-15s %10u %6.3f %6.3f %9.3f %9.3f %9.3f %5.2f\n", of->name, way_names[way],
           of->n_arrivals, o.jain_least, o.jain_mean, o.median, o.p95, o.p99,
           s->busy / (N_THREADS * s->now));
    free(s->users);
    free(s->waits);
    free(s);
    return o;
}

/* Whether our way is as it should be. */
static bool compare(const struct scenario *of, bool is_fair_always)
{
    struct outcome o[N_WAYS];
    for (unsigned way = 0; way < N_WAYS; way++)
        o[way] = simulate(of, (enum way)way);
    bool is_good =
        o[WAY_TURNS].n_wasted == 0 && o[WAY_TURNS].p99 <= o[WAY_FIFO].p99 &&
        o[WAY_TURNS].p99 <= o[WAY_SLICES].p99 &&
        (is_fair_always ? o[WAY_TURNS].jain_least : o[WAY_TURNS].jain_mean) >= JAIN_LEAST;
    if (!is_good)
        printf("%s: turns are not as they should be\n", of->name);
    free(of->weights);
    free(of->arrivals);
    free(of->pauses);
    return is_good;
}

int main(int argc, char **argv)
{
    double days = argc > 1 ? strtod(argv[1], NULL) : 1;
    unsigned long n_users = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
    struct scenario of;
    random_state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    if (!(days > 0 && days <= 30) || n_users < 1 || n_users > MAX_USERS) {
        fprintf(stderr, "usage: simulate [DAYS (at most 30) [USERS (at most %u) [SEED]]]\n",
                MAX_USERS);
        return 2;
    }
    printf("%-8s %-15s %10s %13s %29s %5s\n%-8s %-15s %10s %6s %6s %9s %9s %9s %5s\n", "", "", "",
           "Jain's index", "small jobs wait, s", "", "scenario", "way", "jobs", "least", "mean",
           "median", "95 %", "99 %", "used");
    make_greedy(&of, "greedy", false);
    bool is_good = compare(&of, true);
    make_greedy(&of, "weights", true);
    is_good &= compare(&of, true);
    make_paused(&of);
    is_good &= compare(&of, true);
    make_days(&of, days, (unsigned)n_users);
    is_good &= compare(&of, false);
    return is_good ? 0 : 1;
}
