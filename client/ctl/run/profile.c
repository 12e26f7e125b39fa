/* The profile of one job: private memory of this process, of the broker and of the workers, and the
 * bytes that the job has read and written, over time.
 *
 *     the job's thread     submit ----- progress ---- progress ---- end
 *     a thread of its own  look . look . look . look . look . look .
 *
 * This process's memory is in its own /proc, the others' are the daemon's to tell (server.stats):
 * they belong to another user as a rule. How far the job is comes with its progress. A look that
 * the daemon does not answer in time has no numbers of it, and the curve a gap there.
 *
 * Whatever the job takes, there are at most MOST_LOOKS: when there are so many every second one is
 * dropped, and from then on looks are twice as far apart.
 *
 * Called by run.c.
 */
#include "client/ctl/run/profile.h"
#include "client/ctl/picture/chart.h"
#include "client/ctl/stats/stats.h"
#include "proto/private_memory.h"
#include "proto/util.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_LOOKS   2048u
#define MOST_WORKERS 17u
#define FIRST_S      0.02
#define ANSWER_MS    1000

enum { CLIENT_BYTES, BROKER_BYTES, READ_BYTES, WRITE_BYTES, FIRST_WORKER };
#define N_NUMBERS (FIRST_WORKER + MOST_WORKERS)

struct look {
    double at_s;
    double numbers[N_NUMBERS]; /* NaN: not known */
};

struct profile {
    struct gad_client *client; /* of the thread */
    int statm_fd;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool has_thread, is_over; /* the latter under the lock, as all below */
    double began_s, apart_s;
    double read_bytes, write_bytes;
    char names[MOST_WORKERS][16];
    unsigned n_workers;
    unsigned n;
    struct look looks[MOST_LOOKS];
};

/* Looking -------------------------------------------------------------------------------------- */

static void read_workers(struct profile *p, struct json_object *stats, struct look *look)
{
    struct json_object *engines = stats_at(stats, "engines");
    size_t n =
        json_object_is_type(engines, json_type_array) ? json_object_array_length(engines) : 0;
    for (size_t i = 0; i < n && i < MOST_WORKERS; i++) {
        struct json_object *engine = json_object_array_get_idx(engines, i);
        snprintf(p->names[i], sizeof(p->names[i]), "%s", stats_text(engine, "name"));
        look->numbers[FIRST_WORKER + i] = stats_f64(engine, "private_bytes");
    }
    p->n_workers = (unsigned)min_u64(n, MOST_WORKERS);
}

/* NULL: it did not answer. */
static struct json_object *ask(const struct profile *p)
{
    char *text = NULL;
    struct gad_error ignored = {0};
    if (gad_stats_json(p->client, &text, &ignored))
        return NULL;
    struct json_object *stats = json_tokener_parse(text);
    free(text);
    return stats;
}

static void drop_every_second(struct profile *p)
{
    for (unsigned i = 0; 2 * i < p->n; i++)
        p->looks[i] = p->looks[2 * i];
    p->n = (p->n + 1) / 2;
    p->apart_s *= 2;
}

/* With the lock, and without it while the daemon is asked. */
static void look(struct profile *p)
{
    pthread_mutex_unlock(&p->lock);
    struct json_object *stats = ask(p);
    double at_s = ctl_now_s() - p->began_s;
    double own_bytes = (double)private_memory_bytes(p->statm_fd);
    pthread_mutex_lock(&p->lock);
    if (p->n == MOST_LOOKS)
        drop_every_second(p);
    struct look *look = &p->looks[p->n++];
    look->at_s = at_s;
    for (unsigned i = 0; i < N_NUMBERS; i++)
        look->numbers[i] = NAN;
    look->numbers[CLIENT_BYTES] = own_bytes > 0 ? own_bytes : NAN;
    look->numbers[READ_BYTES] = p->read_bytes;
    look->numbers[WRITE_BYTES] = p->write_bytes;
    if (stats) {
        look->numbers[BROKER_BYTES] = stats_f64(stats, "private_bytes");
        read_workers(p, stats, look);
        json_object_put(stats);
    }
}

static void wait_for(struct profile *p, double seconds)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    double whole = floor(seconds);
    end.tv_sec += (time_t)whole;
    end.tv_nsec += (long)((seconds - whole) * 1e9);
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    while (!p->is_over && pthread_cond_timedwait(&p->wake, &p->lock, &end) == 0)
        ;
}

static void *profile_main(void *argument)
{
    struct profile *p = argument;
    pthread_mutex_lock(&p->lock);
    while (!p->is_over) {
        look(p);
        wait_for(p, p->apart_s);
    }
    look(p);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

int profile_begin(struct profile **ret_profile, struct gad_error *error)
{
    const struct gad_connect_options connect = {
        .client_name = "gpuarrayctl run", .no_private_daemon = true, .timeout_ms = ANSWER_MS};
    struct profile *p = calloc(1, sizeof(*p));
    pthread_condattr_t monotonic;
    if (!p)
        return error_set(error, GAD_NO_MEMORY, NULL, "no memory for a profile");
    p->statm_fd = open(PRIVATE_MEMORY_FILE, O_RDONLY | O_CLOEXEC);
    p->began_s = ctl_now_s();
    p->apart_s = FIRST_S;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int r = (int)gad_connect(&connect, &p->client, error);
    if (!r && pthread_create(&p->thread, NULL, profile_main, p))
        r = error_set(error, GAD_NO_MEMORY, NULL, "no thread for a profile");
    if (r) {
        profile_free(p);
        return r;
    }
    p->has_thread = true;
    *ret_profile = p;
    return 0;
}

void profile_progress(struct profile *p, const struct gad_progress *now)
{
    pthread_mutex_lock(&p->lock);
    p->read_bytes = (double)now->read_bytes;
    p->write_bytes = (double)now->write_bytes;
    pthread_mutex_unlock(&p->lock);
}

void profile_end(struct profile *p, const struct gad_job_stats *stats)
{
    pthread_mutex_lock(&p->lock);
    if (stats) {
        p->read_bytes = (double)stats->read_bytes;
        p->write_bytes = (double)stats->write_bytes;
    }
    p->is_over = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    p->has_thread = false;
}

struct profile *profile_free(struct profile *p)
{
    if (!p)
        return NULL;
    if (p->has_thread)
        profile_end(p, NULL);
    gad_close(p->client);
    close_fd(&p->statm_fd);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

/* Drawing -------------------------------------------------------------------------------------- */

struct drawing {
    const struct profile *profile;
    double times[MOST_LOOKS];
    double values[N_NUMBERS][MOST_LOOKS];
    double rates[2][MOST_LOOKS];
    char names[MOST_WORKERS][32];
    struct chart_curve memory[N_NUMBERS], bytes[2], rate[2];
};

/* Over a twentieth of the time at least: progress comes in steps. */
static void make_rates(struct drawing *d, unsigned which)
{
    const double *values = d->values[READ_BYTES + which];
    double least_s = d->profile->n > 0 ? d->times[d->profile->n - 1] / 20 : 0;
    for (unsigned i = 0, from = 0; i < d->profile->n; i++) {
        while (from + 1 < i && d->times[i] - d->times[from + 1] >= least_s)
            from++;
        double span = d->times[i] - d->times[from];
        d->rates[which][i] = span > 0 ? (values[i] - values[from]) / span : NAN;
    }
}

static unsigned fill_memory(struct drawing *d)
{
    const struct profile *p = d->profile;
    unsigned n = 0;
    d->memory[n++] = (struct chart_curve){.name = "client", .values = d->values[CLIENT_BYTES]};
    d->memory[n++] = (struct chart_curve){.name = "broker", .values = d->values[BROKER_BYTES]};
    for (unsigned i = 0; i < p->n_workers; i++) {
        snprintf(d->names[i], sizeof(d->names[i]), "worker %s", p->names[i]);
        d->memory[n++] =
            (struct chart_curve){.name = d->names[i], .values = d->values[FIRST_WORKER + i]};
    }
    return n;
}

static void fill_bytes(struct drawing *d)
{
    static const char *const names[] = {"read", "written"};
    for (unsigned i = 0; i < 2; i++) {
        make_rates(d, i);
        d->bytes[i] = (struct chart_curve){
            .name = names[i], .values = d->values[READ_BYTES + i], .is_filled = true};
        d->rate[i] = (struct chart_curve){.name = names[i], .values = d->rates[i]};
    }
}

static void draw(FILE *file, struct drawing *d, const char *title)
{
    const struct profile *p = d->profile;
    char subtitle[64];
    for (unsigned i = 0; i < p->n; i++) {
        d->times[i] = p->looks[i].at_s;
        for (unsigned j = 0; j < N_NUMBERS; j++)
            d->values[j][i] = p->looks[i].numbers[j];
    }
    double last_s = p->n > 0 ? d->times[p->n - 1] : 0;
    fill_bytes(d);
    const struct chart charts[] = {
        {"Private memory", AXIS_BYTES, d->memory, fill_memory(d)},
        {"Bytes so far", AXIS_BYTES, d->bytes, 2},
        {"Bytes a second", AXIS_BYTES_A_SECOND, d->rate, 2},
    };
    const struct chart_page page = {.title = title,
                                    .subtitle = subtitle,
                                    .times = d->times,
                                    .n_times = p->n,
                                    .last = last_s,
                                    .clock_s = NAN,
                                    .charts = charts,
                                    .n_charts = ARRAY_LENGTH(charts)};
    snprintf(subtitle, sizeof(subtitle), "gpuarrayctl run, %.3f s, %u looks", last_s, p->n);
    chart_write_page(file, &page);
}

int profile_write(struct profile *p, const char *path, const char *title, struct gad_error *error)
{
    struct drawing *d = calloc(1, sizeof(*d));
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *file = d ? open_memstream(&text, &n_bytes) : NULL;
    int r = 0;
    if (file) {
        d->profile = p;
        draw(file, d, title);
    }
    if (!file || fclose(file) != 0)
        r = error_set(error, GAD_NO_MEMORY, NULL, "no memory for a profile");
    else
        r = stats_replace_file(path, text, n_bytes, error);
    free(text);
    free(d);
    return r;
}
