/* A broker and a worker that keep no accounts, count nothing, take no samples and trace nothing:
 * what accounting.py compares the real ones with. It is linked before the libraries, whose
 * functions of the same names are then left out, so it has every function of these headers. */
#ifdef GAD_BARE_WORKER
#include "daemon/worker/trace.h"

#include <stddef.h>

int trace_new(uint64_t now_ns, struct trace **ret_trace)
{
    *ret_trace = NULL;
    return 0;
}

struct trace *trace_free(struct trace *trace)
{
    return trace;
}

void trace_add(struct trace *trace, uint64_t job, const struct trace_record *record) {}

unsigned trace_find(const struct trace *trace, uint64_t job, struct trace_record *ret_records,
                    uint64_t *ret_since_ns)
{
    *ret_since_ns = 0;
    return 0;
}
#else
#include "daemon/broker/numbers/metrics.h"
#include "daemon/broker/numbers/sampler.h"
#include "daemon/broker/sessions/account.h"

static char nothing; /* what pointers that nobody follows point at */

/* Accounts ---------------------------------------------------------------------------------- */

int accounts_new(const struct account_limits *limits, struct accounts **ret_accounts)
{
    *ret_accounts = (struct accounts *)&nothing;
    return 0;
}

struct accounts *accounts_free(struct accounts *accounts)
{
    return NULL;
}

void accounts_set_limits(struct accounts *accounts, const struct account_limits *limits) {}

void accounts_set_terms(struct accounts *accounts, uid_t uid,
                        const uint64_t limits[ACCOUNT_N_RESOURCES], uint32_t weight)
{
}

void accounts_forget_terms(struct accounts *accounts, uid_t uid) {}

uint32_t account_weight(const struct accounts *accounts, uid_t uid)
{
    return 1;
}

int accounts_set_weight(struct accounts *accounts, uid_t uid, uint32_t weight,
                        struct gad_error *error)
{
    return 0;
}

void accounts_forget_weights(struct accounts *accounts) {}

int account_charge(struct accounts *accounts, uid_t uid, enum account_resource resource,
                   uint64_t amount, struct charge *ret_charge, struct gad_error *error)
{
    return 0;
}

void account_set_charge(struct accounts *accounts, uid_t uid, enum account_resource resource,
                        uint64_t amount, struct charge *charge)
{
}

void charge_release(struct charge *charge) {}

void account_spend(struct accounts *accounts, uid_t uid, enum account_resource resource,
                   uint64_t amount)
{
}

int account_check(const struct accounts *accounts, uid_t uid, enum account_resource resource,
                  struct gad_error *error)
{
    return 0;
}

void accounts_forget(struct accounts *accounts, uint64_t now_ns) {}

uint64_t account_limit(const struct accounts *accounts, uid_t uid, enum account_resource resource)
{
    return INT64_MAX;
}

bool account_has_room(const struct accounts *accounts, uid_t uid, enum account_resource resource,
                      uint64_t amount)
{
    return true;
}

bool account_is_over(const struct accounts *accounts, uid_t uid, enum account_resource resource)
{
    return false;
}

uint64_t account_use(const struct accounts *accounts, uid_t uid, enum account_resource resource)
{
    return 0;
}

uint64_t accounts_total(const struct accounts *accounts, enum account_resource resource)
{
    return 0;
}

void accounts_for_each(const struct accounts *accounts,
                       bool (*func)(void *userdata, const struct account_state *state),
                       void *userdata)
{
}

unsigned accounts_n(const struct accounts *accounts)
{
    return 0;
}

const char *account_resource_key(enum account_resource resource)
{
    return "";
}

/* Metrics ----------------------------------------------------------------------------------- */

void metrics_init(struct metrics *metrics)
{
    *metrics = (struct metrics){0};
    list_init(&metrics->users);
}

void metrics_deinit(struct metrics *metrics) {}

void metrics_session(struct metrics *metrics, uid_t uid) {}

void metrics_refused(struct metrics *metrics, int status) {}

void metrics_submitted(struct metrics *metrics, struct job *job) {}

void metrics_started(struct metrics *metrics, struct job *job) {}

void metrics_requeued(struct metrics *metrics, struct job *job, uint64_t now_ns) {}

void metrics_settling(struct metrics *metrics, struct job *job) {}

void metrics_moved(struct metrics *metrics, struct job *job, const msgpack_object *map) {}

void metrics_ended(struct metrics *metrics, struct job *job, uint64_t now_ns) {}

uint64_t metrics_n_live(const struct metrics_jobs *jobs)
{
    return 0;
}

uint64_t metrics_waiting_ns(const struct metrics_jobs *jobs, uint64_t now_ns)
{
    return 0;
}

/* Samples ----------------------------------------------------------------------------------- */

int sampler_new(struct broker *broker, struct sampler **ret_sampler)
{
    *ret_sampler = NULL;
    return 0;
}

struct sampler *sampler_free(struct sampler *sampler)
{
    return sampler;
}

void sampler_look_after(struct sampler *sampler) {}

uint64_t sampler_broker_bytes(const struct sampler *sampler)
{
    return 0;
}

int sampler_handle(const struct request *q, struct gad_error *error)
{
    return error_set(error, GAD_UNKNOWN_METHOD, NULL, "no samples are taken");
}
#endif
