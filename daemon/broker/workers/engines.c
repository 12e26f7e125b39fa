/* Which worker computes a job.
 *
 * The job is planned for every engine that it may use, with that engine's pool and rates; the
 * plan's estimate and what waits there already make the time at which it would end. The earliest
 * end wins, of the engines that are ready; of those that are still to come where none is. A tie
 * goes to the one that was offered first: the CPU's, then the devices by number.
 *
 *     auto: cpu 812 us (memory), cuda:0 2.1 ms (link) behind 10 ms
 *
 * Every job passes here, and its result says why it went where it did: the texts are put together
 * without printf. Pure code; called by submit.c for the choice, and by methods_job.c for what
 * job.plan says of it.
 */
#include "daemon/broker/workers/engines.h"
#include "proto/util.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Texts --------------------------------------------------------------------------------------- */

struct line { /* cut where it is full; always ended by NUL */
    char *text;
    size_t n, size;
};

static void add(struct line *line, const char *text)
{
    size_t n = strlen(text), room = line->size - 1 - line->n;
    if (n > room)
        for (n = room; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
            n--; /* no half character */
    memcpy(line->text + line->n, text, n);
    line->n += n;
    line->text[line->n] = '\0';
}

static void add_number(struct line *line, uint64_t number)
{
    char digits[24];
    size_t at = sizeof(digits) - 1;
    digits[at] = '\0';
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    add(line, digits + at);
}

/* Three digits or so: "812 us", "2.1 ms", "3.4 s". */
static void add_seconds(struct line *line, double seconds)
{
    static const char *const units[] = {" us", " ms", " s"};
    double value = seconds < 0 ? 0 : seconds > 1e12 ? 1e18 : seconds * 1e6;
    unsigned unit = 0;
    for (; value >= 1000 && unit + 1 < ARRAY_LENGTH(units); unit++)
        value /= 1000;
    uint64_t tenths = (uint64_t)(value * 10 + 0.5);
    bool has_tenth = unit > 0 && tenths < 1000;
    add_number(line, has_tenth ? tenths / 10 : (tenths + 5) / 10);
    if (has_tenth) {
        add(line, ".");
        add_number(line, tenths % 10);
    }
    add(line, units[unit]);
}

static const char *word(const struct job_request *request, char buffer[ENGINE_NAME_SIZE])
{
    struct line line = {.text = buffer, .size = ENGINE_NAME_SIZE};
    if (request->engine != ENGINE_CUDA)
        return request->engine == ENGINE_CPU ? "cpu" : "auto";
    add(&line, "cuda");
    if (request->engine_index >= 0) {
        add(&line, ":");
        add_number(&line, (uint64_t)request->engine_index);
    }
    return buffer;
}

/* The choice ---------------------------------------------------------------------------------- */

static bool is_allowed(const struct job_request *request, const struct engine_offer *offer)
{
    switch (request->engine) {
    case ENGINE_CPU: return !offer->is_device;
    case ENGINE_CUDA:
        return offer->is_device &&
               (request->engine_index < 0 || request->engine_index == offer->index);
    default: return true;
    }
}

static unsigned rank(const struct engine_offer *offer)
{
    return offer->is_ready ? 2 : offer->is_coming ? 1 : 0;
}

static int estimate(const struct job_request *request, const struct program *program, bool in_place,
                    const struct engine_offer *offer, struct engine_estimate *ret)
{
    ret->error.status = GAD_OK;
    int r = plan_make(request, program, in_place, &offer->limits, &ret->plan, &ret->error);
    if (r < 0)
        return r;
    ret->is_possible = r == 0;
    ret->seconds = ret->is_possible ? ret->plan.seconds + offer->busy_seconds : 0;
    return 0;
}

/* Possible before impossible, ready before coming, early before late. */
static bool is_better(const struct engine_offer *offers, const struct engine_estimate *a,
                      const struct engine_estimate *b)
{
    unsigned rank_a = rank(&offers[a->offer]), rank_b = rank(&offers[b->offer]);
    if (a->is_possible != b->is_possible)
        return a->is_possible;
    if (rank_a != rank_b)
        return rank_a > rank_b;
    return a->seconds < b->seconds;
}

static void add_estimate(struct line *line, const struct engine_offer *offer,
                         const struct engine_offer *chosen, const struct engine_estimate *e)
{
    add(line, offer->name);
    add(line, " ");
    if (!e->is_possible) {
        add(line, "cannot (");
        add(line, error_word(e->error.status));
        add(line, ")");
        return;
    }
    add_seconds(line, e->plan.seconds);
    add(line, " (");
    add(line, plan_bound_name(e->plan.bound));
    add(line, ")");
    if (offer->busy_seconds > 0) {
        add(line, " behind ");
        add_seconds(line, offer->busy_seconds);
    }
    if (rank(offer) < rank(chosen))
        add(line, " once it is ready");
}

/* One engine after the other, from estimate number `first` on and then the others in their order.
 * False: there was no room for all; none is cut, and "..." stands for those that are left out. */
static bool add_estimates(struct line *line, const struct engine_offer *offers,
                          const struct engine_decision *decision, unsigned first)
{
    static const char more[] = ", ...";
    for (unsigned i = 0; i < decision->n_estimates; i++) {
        unsigned at = i == 0 ? first : i <= first ? i - 1 : i;
        const struct engine_estimate *e = &decision->estimates[at];
        char text[ENGINE_WHY_SIZE] = "";
        struct line entry = {.text = text, .size = sizeof(text)};
        add(&entry, i == 0 ? ": " : ", ");
        add_estimate(&entry, &offers[e->offer], &offers[decision->offer], e);
        if (line->n + entry.n + sizeof(more) > line->size) {
            add(line, more);
            return false;
        }
        add(line, text);
    }
    return true;
}

static unsigned chosen_estimate(const struct engine_decision *decision)
{
    unsigned i = 0;
    while (decision->estimates[i].offer != decision->offer)
        i++;
    return i;
}

static void tell_why(const struct job_request *request, const struct engine_offer *offers,
                     unsigned n_offers, struct engine_decision *decision)
{
    char name[ENGINE_NAME_SIZE] = "";
    struct line line = {.text = decision->why, .size = sizeof(decision->why)};
    add(&line, word(request, name));
    if (decision->n_estimates == 1) {
        const char *chosen = offers[decision->offer].name;
        if (request->engine == ENGINE_AUTO) {
            add(&line, n_offers == 1 ? ": there is only " : ": only ");
            add(&line, chosen);
            add(&line, n_offers == 1 ? "" : " takes jobs");
        } else {
            add(&line, " was asked for");
        }
        return;
    }
    size_t n = line.n;
    if (add_estimates(&line, offers, decision, 0))
        return;
    line.n = n; /* too long for all: not without the one that was chosen */
    add_estimates(&line, offers, decision, chosen_estimate(decision));
}

/* "cpu, cuda:0": what takes jobs, or will. */
static void list_there(const struct engine_offer *offers, unsigned n_offers, struct line *line)
{
    for (unsigned i = 0; i < n_offers; i++) {
        if (rank(&offers[i]) == 0)
            continue;
        add(line, line->n > 0 ? ", " : "");
        add(line, offers[i].name);
    }
    add(line, line->n > 0 ? "" : "none");
}

/* No worker is of the kind that was asked for. */
static const char *none_such(const struct job_request *request, const struct engine_offer *offers,
                             unsigned n_offers)
{
    bool has_device = n_offers > 0 && offers[n_offers - 1].is_device; /* the CPU's comes first */
    if (request->engine == ENGINE_AUTO)
        return NULL;
    if (request->engine == ENGINE_CPU)
        return "the daemon's setting is engine = cuda";
    if (has_device)
        return "there is no such device, or the setting devices leaves it out";
    return "the daemon's setting is engine = cpu, or gpuarrayd-worker-cuda is not installed";
}

static int refuse(const struct job_request *request, const struct engine_offer *offers,
                  unsigned n_offers, struct gad_error *error)
{
    char name[ENGINE_NAME_SIZE] = "", there[112] = "";
    struct line line = {.text = there, .size = sizeof(there)};
    const char *why = NULL, *engine = word(request, name);
    for (unsigned i = 0; i < n_offers && !why; i++)
        if (is_allowed(request, &offers[i]))
            why = offers[i].absent_why;
    if (!why)
        why = none_such(request, offers, n_offers);
    list_there(offers, n_offers, &line);
    if (request->engine == ENGINE_AUTO)
        error_set(error, GAD_NO_ENGINE, "engine", "no engine is there%s%.300s", why ? ": " : "",
                  why ? why : "");
    else
        error_set(error, GAD_NO_ENGINE, "engine", "the engine %s is not there%s%.300s", engine,
                  why ? ": " : "", why ? why : "");
    error_expected(error, "%s", there);
    error_found(error, "%s", engine);
    return GAD_NO_ENGINE;
}

int engines_decide(const struct job_request *request, const struct program *program, bool in_place,
                   const struct engine_offer *offers, unsigned n_offers,
                   struct engine_decision *ret, struct gad_error *error)
{
    const struct engine_estimate *best = NULL;

    assert(n_offers <= ENGINES_MAX);
    ret->n_estimates = 0;
    for (unsigned i = 0; i < n_offers; i++) {
        struct engine_estimate *e = &ret->estimates[ret->n_estimates];
        if (rank(&offers[i]) == 0 || !is_allowed(request, &offers[i]))
            continue;
        int r = estimate(request, program, in_place, &offers[i], e);
        if (r < 0)
            return r;
        e->offer = i;
        ret->n_estimates++;
        if (!best || is_better(offers, e, best))
            best = e;
    }
    if (!best)
        return refuse(request, offers, n_offers, error);
    if (!best->is_possible) {
        if (error)
            *error = best->error;
        return (int)best->error.status;
    }
    ret->offer = best->offer;
    tell_why(request, offers, n_offers, ret);
    return 0;
}

const struct engine_estimate *engines_estimate_of(const struct engine_decision *decision,
                                                  unsigned offer)
{
    for (unsigned i = 0; i < decision->n_estimates; i++)
        if (decision->estimates[i].offer == offer)
            return &decision->estimates[i];
    return NULL;
}

void engines_why_not(const struct job_request *request, const struct engine_offer *offers,
                     const struct engine_decision *decision, unsigned offer,
                     char ret[static ENGINE_WHY_SIZE])
{
    const struct engine_estimate *e = engines_estimate_of(decision, offer);
    const struct engine_offer *o = &offers[offer], *chosen = &offers[decision->offer];
    char name[ENGINE_NAME_SIZE] = "";
    struct line line = {.text = ret, .size = ENGINE_WHY_SIZE};
    ret[0] = '\0';
    if (offer == decision->offer)
        return;
    if (e && !e->is_possible) {
        add(&line, e->error.message);
    } else if (e && rank(o) == rank(chosen)) {
        add(&line, o->busy_seconds > 0 ? "ends later, behind " : "ends later");
        if (o->busy_seconds > 0)
            add_seconds(&line, o->busy_seconds);
    } else if (e) {
        add(&line, "takes no jobs yet");
    } else if (rank(o) > 0) {
        add(&line, word(request, name));
        add(&line, " was asked for");
    } else {
        add(&line, o->absent_why ? o->absent_why : "is not there");
    }
}
