/* A job from the broker's message to its ports, and back to nothing.
 *
 * The worker decodes, compiles and plans the client's request again, with the broker's code: same
 * bytes, same plan. Then it opens a port for every array. After that no step of the job takes
 * memory: tiles work in the pool, in the rings and in what was allocated here.
 *
 * wjob_free() takes a job in any state of construction. Descriptors and rings are closed apart from
 * the rest, since that may take long and is not for the main thread.
 */
#include "daemon/worker/jobs/wjob.h"
#include "daemon/rates.h"
#include "daemon/worker/io/ring.h"
#include "daemon/worker/jobs/mapping.h"
#include "daemon/worker/walks/journal.h"
#include "daemon/worker/walks/walk_product.h"
#include "daemon/worker/walks/walk_slab.h"
#include "kernels/expr/programs.h"
#include "kernels/plan/plan_engine.h"
#include "proto/util.h"
#include "proto/wire/map.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>

#define MAX_INLINE_RESULTS (FRAME_MAX_BODY_BYTES - 64u * 1024u)
#define EXPRESS_MAX_BYTES  (4u * 1024u * 1024u)

static int read_u32(const msgpack_object *params, const char *key, uint32_t *ret,
                    struct gad_error *error)
{
    uint64_t value = *ret;
    int r = map_u64(params, key, &value, error);
    if (!r && value > UINT32_MAX)
        return error_set(error, GAD_BAD_REQUEST, key, "%s is out of range", key);
    *ret = (uint32_t)value;
    return r;
}

int wjob_read_identity(const msgpack_object *params, struct wjob_identity *identity,
                       struct gad_error *error)
{
    int64_t priority = 0;
    identity->weight = 1;
    int r = map_require_u64(params, "job", &identity->id, error);
    if (!r)
        r = read_u32(params, "user", &identity->user, error);
    if (!r)
        r = read_u32(params, "weight", &identity->weight, error);
    if (!r)
        r = map_i64(params, "priority", &priority, error);
    if (!r)
        r = map_u64(params, "carry_offset", &identity->carry_offset_bytes, error);
    if (!r)
        r = map_u64(params, "carry_size", &identity->carry_size_bytes, error);
    if (!r)
        r = map_u64(params, "device_carry_offset", &identity->device_carry_offset_bytes, error);
    if (!r)
        r = map_u64(params, "device_carry_size", &identity->device_carry_size_bytes, error);
    if (!r && (priority < INT32_MIN || priority > INT32_MAX))
        r = error_set(error, GAD_BAD_REQUEST, "priority", "the priority is out of range");
    identity->priority = (int)priority;
    if (identity->weight == 0)
        identity->weight = 1;
    return r;
}

static int refuse_carry(const char *argument, uint64_t expected, uint64_t found,
                        struct gad_error *error)
{
    error_set(error, GAD_BAD_REQUEST, argument, "the carry is smaller than the plan's");
    error_expected(error, "%llu bytes", (unsigned long long)expected);
    error_found(error, "%llu bytes", (unsigned long long)found);
    return GAD_BAD_REQUEST;
}

int wjob_check_carries(const struct wjob *job, const struct plan_limits *limits,
                       struct gad_error *error)
{
    const struct wjob_identity *id = &job->identity;
    const struct plan *plan = &job->plan;
    uint64_t there = limits->device_carry_bytes, offset = id->device_carry_offset_bytes;
    if (id->device_carry_size_bytes > there || offset > there - id->device_carry_size_bytes)
        return error_set(error, GAD_BAD_REQUEST, "device_carry_offset",
                         "the carry is not inside the device's memory for them");
    if (!plan->is_small && plan->carry_bytes > id->carry_size_bytes)
        return refuse_carry("carry_size", plan->carry_bytes, id->carry_size_bytes, error);
    if (plan->device_carry_bytes > id->device_carry_size_bytes)
        return refuse_carry("device_carry_size", plan->device_carry_bytes,
                            id->device_carry_size_bytes, error);
    return 0;
}

static int compile(struct wjob *job, const msgpack_object *params,
                   const struct wjob_context *context, struct gad_error *error)
{
    const msgpack_object *request = map_find(params, "request");
    struct plan_limits limits = *context->limits;
    if (!request)
        return error_set(error, GAD_BAD_REQUEST, "request", "the request is missing");
    bool makes_again = false;
    int r = map_bool(params, "in_place", &job->is_in_place, error);
    if (!r)
        r = map_bool(params, "makes_again", &makes_again, error);
    if (!r)
        r = rates_read(params, &limits.rates, error); /* those that the broker has planned with */
    if (!r)
        r = request_decode(request, job->frame.n_fds, false, &job->request, error);
    if (!r) {
        job->request->is_apart = !job->is_in_place; /* as in the broker: the same program */
        job->request->has_no_slabs = !context->limits->engine->walks_slabs;
        job->request->makes_again = makes_again;
        r = programs_compile(context->programs, job->identity.user, job->request, &job->program,
                             error);
    }
    if (!r)
        r = plan_make(job->request, job->program, job->is_in_place, &limits, &job->plan, error);
    if (r)
        return r;
    r = wjob_check_carries(job, context->limits, error);
    if (r)
        return r;
    job->fills_slots = context->limits->engine->fills_slots;
    job->n_threads = context->limits->n_threads;
    job->is_express = job->plan.read_bytes <= EXPRESS_MAX_BYTES &&
                      job->plan.write_bytes <= EXPRESS_MAX_BYTES - job->plan.read_bytes;
    return 0;
}

/* An output's array: the client's, or dense memory for the reply. */
static void describe_output(const struct wjob *job, unsigned index, struct port *port)
{
    const struct program_output *output = &job->program->outputs[index];
    const struct request_output *request = &job->request->outputs[index];
    port->name = request_output_name(request, index, port->own_name);
    if (request->has_to) {
        port->array = request->to;
        return;
    }
    port->array.dtype = output->dtype;
    port->array.ndim = output->ndim;
    memcpy(port->array.shape, output->shape, (size_t)output->ndim * sizeof(output->shape[0]));
    array_c_strides(output->ndim, output->shape, (int64_t)dtype_size(output->dtype),
                    port->array.strides);
}

/* Fills the inline outputs' sizes; the sum is limited by what a reply can carry. */
static int measure_inline(const struct wjob *job, const struct port *outputs, size_t *ret_n_bytes,
                          struct gad_error *error)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < job->program->n_outputs; i++) {
        const struct array *array = &outputs[i].array;
        if (array->at.kind != LOCATION_NONE)
            continue;
        int r = array_check(array, outputs[i].name, error);
        if (r)
            return r;
        uint64_t n_bytes = (uint64_t)array_n_bytes(array);
        if (n_bytes > ARRAY_MAX_INLINE_BYTES || total + n_bytes > MAX_INLINE_RESULTS) {
            bool is_one = n_bytes > ARRAY_MAX_INLINE_BYTES;
            error_set(error, GAD_TOO_LARGE_FOR_INLINE, outputs[i].name,
                      "%s too large for the reply: say where it is to go",
                      is_one ? "the result is" : "the results together are");
            error_expected(error, "at most %u bytes",
                           is_one ? ARRAY_MAX_INLINE_BYTES : MAX_INLINE_RESULTS);
            if (job->request->open_length > 0 && array->ndim > 0 &&
                array->shape[0] == job->request->open_length)
                error_found(error, "a length that is known at the end only");
            else
                error_found(error, "%llu bytes",
                            (unsigned long long)(is_one ? n_bytes : total + n_bytes));
            return GAD_TOO_LARGE_FOR_INLINE;
        }
        total += round_up_u64(n_bytes, 64);
    }
    *ret_n_bytes = total;
    return 0;
}

/* An argument that is two inputs, one of them transposed, has one ring. */
static bool share_ring(struct wjob *job, unsigned index)
{
    const struct program_input *inputs = job->program->inputs;
    struct port *port = &job->ports[index];
    for (unsigned i = 0; i < index; i++) {
        if (inputs[i].arg != inputs[index].arg || !job->ports[i].ring)
            continue;
        port->ops = job->ports[i].ops;
        port->item_bytes = job->ports[i].item_bytes;
        port->ring = job->ports[i].ring;
        port->has_others_ring = true;
        return true;
    }
    return false;
}

static int open_inputs(struct wjob *job, struct port_context *context, struct gad_error *error)
{
    context->is_output = false;
    for (unsigned i = 0; i < job->program->n_inputs; i++) {
        const struct request_arg *arg = &job->request->args[job->program->inputs[i].arg];
        struct port *port = &job->ports[i];
        port->name = arg->name;
        port->array = arg->array;
        port->is_transposed = job->program->inputs[i].is_transposed && arg->array.ndim > 1;
        int r = share_ring(job, i) ? 0 : port_open(port, context, NULL, error);
        if (r)
            return r;
    }
    return 0;
}

static int open_outputs(struct wjob *job, struct port_context *context, struct gad_error *error)
{
    struct port *outputs = job->ports + job->program->n_inputs;
    size_t n_bytes = 0, offset = 0;
    context->is_output = true;
    for (unsigned i = 0; i < job->program->n_outputs; i++)
        describe_output(job, i, &outputs[i]);
    int r = measure_inline(job, outputs, &n_bytes, error);
    if (r)
        return r;
    job->inline_results = calloc(1, n_bytes + 1);
    if (!job->inline_results)
        return -ENOMEM;
    for (unsigned i = 0; i < job->program->n_outputs && !r; i++) {
        context->writing = &job->writings[i];
        r = port_open(&outputs[i], context, job->inline_results + offset, error);
        if (outputs[i].array.at.kind == LOCATION_NONE)
            offset += round_up_u64((uint64_t)array_n_bytes(&outputs[i].array), 64);
    }
    return r;
}

static int collect_ranges(struct wjob *job)
{
    job->ranges = calloc(job->n_ports + 1, sizeof(*job->ranges));
    if (!job->ranges)
        return -ENOMEM;
    for (unsigned i = 0; i < job->n_ports; i++) {
        const struct port *port = &job->ports[i];
        if (port->region)
            job->ranges[job->n_ranges++] =
                (struct guard_range){port->region->base, port->region->size_bytes};
        if (port->ring)
            job->ranges[job->n_ranges++] = ring_range(port->ring);
        if (port->file.mapping)
            job->ranges[job->n_ranges++] =
                (struct guard_range){port->file.mapping, (size_t)port->file.mapping_bytes};
        job->has_rings |= port->ring != NULL;
    }
    return 0;
}

/* Some source cannot be mapped after all: sources are read, within the carry that the job has. */
static int plan_without_mapping(struct wjob *job, const struct plan_limits *limits,
                                struct gad_error *error)
{
    struct plan_limits own = *limits;
    own.memory_bytes = 0;
    own.carry_limit_bytes = min_u64(own.carry_limit_bytes, job->identity.carry_size_bytes);
    int r = plan_make(job->request, job->program, job->is_in_place, &own, &job->plan, error);
    return r ? r : wjob_check_carries(job, limits, error);
}

static int open_ports(struct wjob *job, const struct wjob_context *with, struct gad_error *error)
{
    struct port_context context = {.fds = job->frame.fds,
                                   .n_fds = job->frame.n_fds,
                                   .regions = with->regions,
                                   .devices = with->devices,
                                   .gaps = job->request->exclusive ? &job->gaps : NULL};
    unsigned n_ports = (unsigned)job->program->n_inputs + job->program->n_outputs;
    job->ports = calloc(n_ports + 1, sizeof(*job->ports));
    if (!job->ports)
        return -ENOMEM;
    job->n_ports = n_ports;
    int r = open_inputs(job, &context, error);
    if (!r)
        r = open_outputs(job, &context, error);
    if (r)
        return r;
    if (!mapping_open(job))
        r = plan_without_mapping(job, with->limits, error);
    if (!r)
        r = walk_product_new(job, error);
    if (r == 0)
        r = walk_slab_new(job);
    return r ? r : collect_ranges(job);
}

int wjob_new(struct frame *frame_take, const struct message *message,
             const struct wjob_identity *identity, const struct wjob_context *context,
             struct wjob **ret_job, struct gad_error *error)
{
    struct wjob *job = malloc(sizeof(*job));
    if (!job) {
        frame_deinit(frame_take, NULL);
        return -ENOMEM;
    }
    memset(job, 0, offsetof(struct wjob, plan) + PLAN_HEAD_BYTES);
    job->frame = *frame_take;
    *frame_take = (struct frame){.body = NULL};
    job->lock = context->lock;
    pthread_mutex_init(&job->walk.nodes.lock, NULL);
    gaps_init(&job->gaps);
    job->identity = *identity;
    int r = compile(job, &message->params, context, error);
    if (!r)
        r = open_ports(job, context, error);
    if (r) {
        wjob_free(job);
        return r;
    }
    *ret_job = job;
    return 0;
}

void wjob_unwatch_rings(const struct wjob *job, int epoll_fd)
{
    for (unsigned i = 0; i < job->n_ports; i++)
        if (port_owns_ring(&job->ports[i]))
            (void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, ring_done_fd(job->ports[i].ring), NULL);
}

bool wjob_find_disk(const struct wjob *job, unsigned i, uint64_t *ret_device)
{
    const struct port *port = &job->ports[i];
    if (i == job->n_ports && job->walk.journal)
        *ret_device = job->walk.journal->device;
    else if (i < job->n_ports && port->array.at.kind == LOCATION_FILE && !port->file.is_in_memory)
        *ret_device = port->file.device;
    else
        return false;
    return true;
}

/* Of those from first on, before end: as many of each job. */
struct disks {
    unsigned first, end;
};

static struct disks inputs_of(const struct wjob *job)
{
    return (struct disks){0, job->program->n_inputs};
}

static struct disks written_of(const struct wjob *job)
{
    return (struct disks){job->program->n_inputs, job->n_ports + 1};
}

static bool share_disk(const struct wjob *job, struct disks of, const struct wjob *other,
                       struct disks others)
{
    uint64_t a, b;
    for (unsigned i = of.first; i < of.end; i++)
        for (unsigned k = others.first; k < others.end && wjob_find_disk(job, i, &a); k++)
            if (wjob_find_disk(other, k, &b) && a == b)
                return true;
    return false;
}

bool wjob_shares_disk(const struct wjob *job, const struct wjob *other)
{
    return share_disk(job, written_of(job), other, written_of(other));
}

bool wjob_reads_same_disk(const struct wjob *job, const struct wjob *other)
{
    return share_disk(job, inputs_of(job), other, inputs_of(other));
}

/* Of none if it is no port's and not the journal's: a table of chunks, a ring's. */
static uint64_t disk_of_fd(const struct wjob *job, int fd)
{
    uint64_t device;
    for (unsigned i = 0; i <= job->n_ports; i++)
        if (wjob_find_disk(job, i, &device) &&
            (i < job->n_ports ? job->ports[i].file.fd : job->walk.journal->fd) == fd)
            return device;
    return 0;
}

void wjob_close(struct wjob *job, const struct port_io *io)
{
    for (unsigned i = 0; i < job->n_ports; i++)
        port_close_memory(&job->ports[i]);
    journal_close(job);
    for (unsigned i = 0; i < job->frame.n_fds; i++) {
        if (io)
            io->go_to_disk(io->thread, disk_of_fd(job, job->frame.fds[i]));
        close_fd(&job->frame.fds[i]);
    }
    job->frame.n_fds = 0;
}

struct wjob *wjob_free(struct wjob *job)
{
    if (!job)
        return NULL;
    assert(job->n_tiles == 0 && job->n_in_flight == 0);
    wjob_close(job, NULL);
    for (unsigned i = 0; i < job->n_ports; i++)
        port_close_region(&job->ports[i]);
    walk_product_free(job);
    walk_slab_free(job);
    free(job->ports);
    free(job->ranges);
    free(job->inline_results);
    program_free(job->program);
    request_free(job->request);
    frame_deinit(&job->frame, NULL);
    gaps_deinit(&job->gaps);
    pthread_mutex_destroy(&job->walk.nodes.lock);
    free(job);
    return NULL;
}

void wjob_check_regions(struct wjob *job)
{
    for (unsigned i = 0; i < job->n_ports && !job->status; i++) {
        const struct port *port = &job->ports[i];
        int64_t low, high;
        if (!port->region)
            continue;
        array_extent(&port->array, &low, &high);
        int64_t first = (int64_t)port->array.at.region.offset_bytes + low;
        int64_t end = (int64_t)port->array.at.region.offset_bytes + high;
        struct gad_error error;
        if (!region_is_intact(port->region, (uint64_t)first, (uint64_t)end))
            wjob_fail(job,
                      error_set(&error, GAD_REGION_FAULT, port->name,
                                "memory of the region was taken away while the job ran"),
                      &error);
    }
}

void wjob_set_state(struct wjob *job, enum wjob_state state)
{
    static const uint8_t allowed[] = {
        [WJOB_NEW] = 1u << WJOB_OPENING | 1u << WJOB_CLAIMING | 1u << WJOB_RUNNING,
        [WJOB_OPENING] = 1u << WJOB_CLAIMING | 1u << WJOB_ENDING,
        [WJOB_CLAIMING] = 1u << WJOB_RUNNING | 1u << WJOB_ENDING,
        [WJOB_RUNNING] = 1u << WJOB_PARKED | 1u << WJOB_ENDING,
        [WJOB_PARKED] = 1u << WJOB_ENDING,
        [WJOB_ENDING] = 1u << WJOB_ENDED,
        [WJOB_ENDED] = 0,
    };
    assert(allowed[job->state] & 1u << state);
    job->state = state;
}

void wjob_fail(struct wjob *job, int status, const struct gad_error *error)
{
    if (job->status)
        return;
    job->status = status > 0 ? status : GAD_INTERNAL;
    if (status > 0)
        job->error = *error;
    else
        job->status = error_from_errno(&job->error, -status, NULL, "running the job");
    atomic_store_explicit(&job->is_stopped, true, memory_order_relaxed);
}
