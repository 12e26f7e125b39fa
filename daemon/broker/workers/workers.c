/* The workers together.
 *
 *     broker->workers:  cpu | cuda:0 | cuda:1 ...     (engine = auto)
 *                       cuda:0 | cuda:1 ...           (engine = cuda)
 *                       cpu                           (engine = cpu, or no program for CUDA)
 *
 * How many devices there are is known to the first device's worker alone; when it is ready, the
 * workers of the others that the settings allow are added. A worker is never taken away, so its
 * place names it for the daemon's life.
 *
 * A job is decided upon when it comes (engines.c) and waits in the queue of its worker. Where that
 * worker has no device any more, is short of memory or fails for long, what waits there is decided
 * upon again: jobs for any engine go elsewhere; jobs that named this one wait where it was there
 * before, else they end with the reason. Nothing is moved from a worker that works.
 *
 * Called by broker.c, submit.c, region.c, worker.c and messages.c.
 */
#define LOG_TOPIC "workers"
#include "daemon/broker/workers/workers.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/jobs/dispatch.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/sessions/region.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

static int add(struct broker *broker, int index)
{
    struct worker *w;
    int r = worker_new(broker, index, broker->n_workers, &w);
    if (r == 0)
        broker->workers[broker->n_workers++] = w;
    return r;
}

static int first_device(const struct options *o)
{
    int index = 0;
    while (index < (int)ENGINES_MAX - 1 && !settings_have_device(o, (unsigned)index))
        index++;
    return index;
}

static bool wants_devices(const struct options *o)
{
    return o->engine != ENGINE_CPU && o->cuda_worker_path[0] &&
           first_device(o) < (int)ENGINES_MAX - 1;
}

int workers_new(struct broker *broker)
{
    const struct options *o = &broker->options;
    int r = 0;
    if (o->engine != ENGINE_CUDA)
        r = add(broker, -1);
    if (r == 0 && wants_devices(o))
        r = add(broker, first_device(o));
    return r;
}

void workers_free(struct broker *broker)
{
    for (unsigned i = 0; i < broker->n_workers; i++)
        broker->workers[i] = worker_free(broker->workers[i]);
    broker->n_workers = 0;
}

void workers_begin(struct broker *broker)
{
    for (unsigned i = 0; i < broker->n_workers; i++)
        worker_begin(broker->workers[i]);
}

void workers_stop(struct broker *broker)
{
    for (unsigned i = 0; i < broker->n_workers; i++)
        worker_stop(broker->workers[i]);
}

bool workers_have_stopped(const struct broker *broker)
{
    for (unsigned i = 0; i < broker->n_workers; i++)
        if (worker_info(broker->workers[i])->state != WORKER_STOPPED)
            return false;
    return true;
}

void workers_flush(struct broker *broker)
{
    for (unsigned i = 0; i < broker->n_workers; i++)
        worker_flush(broker->workers[i]);
}

void workers_set_weight(struct broker *broker, uid_t uid, uint32_t weight)
{
    for (unsigned i = 0; i < broker->n_workers; i++)
        worker_set_weight(broker->workers[i], uid, weight);
}

void workers_trim(struct broker *broker)
{
    for (unsigned i = 0; i < broker->n_workers; i++)
        worker_trim(broker->workers[i]);
}

void workers_apply_limits(struct broker *broker)
{
    for (unsigned i = 0; i < broker->n_workers; i++)
        worker_apply_limits(broker->workers[i]);
}

void workers_retry(struct broker *broker)
{
    for (unsigned i = 0; i < broker->n_workers; i++)
        worker_retry(broker->workers[i]);
}

struct worker *workers_main(const struct broker *broker)
{
    return broker->workers[0];
}

/* Sums ---------------------------------------------------------------------------------------- */

static unsigned sum(const struct broker *broker, unsigned (*count)(const struct queue *queue))
{
    unsigned n = 0;
    for (unsigned i = 0; i < broker->n_workers; i++)
        n += count(worker_queue(broker->workers[i]));
    return n;
}

unsigned workers_n_active(const struct broker *broker)
{
    return sum(broker, queue_n_active);
}

unsigned workers_n_waiting(const struct broker *broker)
{
    return sum(broker, queue_n_waiting);
}

unsigned workers_n_carries(const struct broker *broker)
{
    return sum(broker, queue_n_carries);
}

struct job *workers_any_waiting(const struct broker *broker)
{
    for (unsigned i = 0; i < broker->n_workers; i++) {
        struct queue_item *item = queue_any_waiting(worker_queue(broker->workers[i]));
        if (item)
            return list_entry(item, struct job, item);
    }
    return NULL;
}

/* Which is there ------------------------------------------------------------------------------ */

static bool is_any(const struct broker *broker, bool (*test)(const struct worker *worker))
{
    for (unsigned i = 0; i < broker->n_workers; i++)
        if (test(broker->workers[i]))
            return true;
    return false;
}

int workers_check(const struct broker *broker, struct gad_error *error)
{
    char text[sizeof(error->message)];
    int n = 0;
    if (is_any(broker, worker_is_ready) || is_any(broker, worker_is_coming))
        return 0;
    for (unsigned i = 0; i < broker->n_workers && n < (int)sizeof(text) - 1; i++) {
        const struct worker_info *info = worker_info(broker->workers[i]);
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s: %s", i > 0 ? "; " : "",
                      info->engine, worker_why(broker->workers[i]));
    }
    return error_set(error, GAD_NO_ENGINE, "engine",
                     "no engine starts, see the daemon's log: %.250s", n > 0 ? text : "");
}

static bool is_awake(const struct worker *worker)
{
    return worker_is_coming(worker) && worker_info(worker)->state != WORKER_ASLEEP;
}

void workers_need_one(struct broker *broker)
{
    for (unsigned i = 0; i < broker->n_workers && !is_any(broker, is_awake); i++)
        worker_wake(broker->workers[i]);
}

/* Deciding ------------------------------------------------------------------------------------ */

static void make_offer(const struct worker *w, struct region *const *regions, unsigned n_regions,
                       struct engine_offer *ret)
{
    const struct worker_info *info = worker_info(w);
    memcpy(ret->name, info->engine, sizeof(ret->name));
    ret->is_device = info->index >= 0;
    ret->index = info->index;
    ret->is_ready = worker_is_ready(w);
    ret->is_coming = !ret->is_ready && worker_is_coming(w);
    ret->absent_why = ret->is_ready || ret->is_coming ? NULL : worker_why(w);
    ret->limits = *worker_limits(w);
    ret->limits_serial = worker_limits_serial(w);
    ret->busy_seconds = worker_busy_seconds(w);
    for (unsigned i = 0; i < n_regions; i++) {
        if (ret->is_ready && region_is_announced_at(regions[i], w)) {
            ret->is_ready = false;
            ret->is_coming = true;
        }
        if (region_is_broken_at(regions[i], w)) {
            ret->is_ready = ret->is_coming = false;
            ret->absent_why = "a region of the job cannot be mapped there";
        }
    }
}

void workers_offer(const struct broker *broker, struct region *const *regions, unsigned n_regions,
                   struct choice *ret)
{
    ret->n_offers = broker->n_workers;
    for (unsigned i = 0; i < ret->n_offers; i++)
        make_offer(broker->workers[i], regions, n_regions, &ret->offers[i]);
}

static const char *keep_text(char kept[static WORKER_WHY_SIZE], const char *text)
{
    if (!text)
        return NULL;
    snprintf(kept, WORKER_WHY_SIZE, "%s", text);
    return kept;
}

void workers_keep_texts(struct choice *choice)
{
    for (unsigned i = 0; i < choice->n_offers; i++) {
        struct engine_offer *offer = &choice->offers[i];
        offer->absent_why = keep_text(choice->texts[i][0], offer->absent_why);
        offer->limits.why_no_blas = keep_text(choice->texts[i][1], offer->limits.why_no_blas);
    }
}

bool workers_are_as_offered(const struct broker *broker, struct region *const *regions,
                            unsigned n_regions, const struct choice *choice)
{
    if (broker->n_workers != choice->n_offers)
        return false;
    for (unsigned i = 0; i < choice->n_offers; i++) {
        const struct engine_offer *then = &choice->offers[i];
        struct engine_offer now;
        make_offer(broker->workers[i], regions, n_regions, &now);
        if (now.is_ready != then->is_ready || now.is_coming != then->is_coming ||
            now.limits_serial != then->limits_serial)
            return false;
    }
    return true;
}

void workers_wake_for(struct broker *broker, const struct job_request *request,
                      const struct plan *plan)
{
    if (request->engine != ENGINE_AUTO || plan->is_small)
        return; /* who is named wakes for its queue */
    for (unsigned i = 0; i < broker->n_workers; i++)
        worker_wake(broker->workers[i]);
}

/* Changes ------------------------------------------------------------------------------------- */

static bool has_worker(const struct broker *broker, int index)
{
    for (unsigned i = 0; i < broker->n_workers; i++)
        if (worker_info(broker->workers[i])->index == index)
            return true;
    return false;
}

static bool are_devices_known(const struct broker *broker)
{
    for (unsigned i = 0; i < broker->n_workers; i++)
        if (worker_info(broker->workers[i])->n_devices > 0)
            return true;
    return false;
}

static bool has_coming_device(const struct broker *broker)
{
    for (unsigned i = 0; i < broker->n_workers; i++)
        if (worker_is_device(broker->workers[i]) && worker_is_coming(broker->workers[i]))
            return true;
    return false;
}

void workers_name_device(struct broker *broker, const struct job_request *request)
{
    int index = request->engine_index;
    if (request->engine != ENGINE_CUDA || index < 0 || index >= (int)ENGINES_MAX - 1 ||
        !settings_have_device(&broker->options, (unsigned)index) || has_worker(broker, index) ||
        are_devices_known(broker) || !has_coming_device(broker))
        return;
    if (add(broker, index) != 0)
        log_error(NULL, "no memory for a worker of cuda:%d", index);
    else
        worker_begin(broker->workers[broker->n_workers - 1]);
}

void workers_found_devices(struct broker *broker, unsigned n_devices)
{
    for (unsigned i = 0; i < n_devices && broker->n_workers < ENGINES_MAX; i++) {
        if (!settings_have_device(&broker->options, i) || has_worker(broker, (int)i))
            continue;
        if (add(broker, (int)i) != 0) {
            log_error(NULL, "no memory for a worker of cuda:%u", i);
            return;
        }
        worker_begin(broker->workers[broker->n_workers - 1]);
    }
}

void workers_lost_one(struct broker *broker, struct worker *w)
{
    struct gad_error error = {0};
    if (!worker_is_coming(w) || is_any(broker, worker_is_ready))
        dispatch_decide_again(broker, w);
    if (workers_check(broker, &error) != 0)
        regions_refuse(broker, &error);
    else
        regions_settle(broker);
}
