/* Tiles on their way through the device.
 *
 * Per tile: one copy to the device on its own stream (more where direct.h has some), the kernel on
 * another, one copy back on a third; events tie them together, so that copies of one tile run
 * beside the kernel of another. All of it is put into the streams under the pipeline's lock, in the
 * order in which tiles come. The device thread waits for the oldest tile, since tiles end in order,
 * submits what has waited for a flight, and gives the tile back to the scheduler.
 *
 * MULTIPLYs of matrix products go into a stream of their own, which is more patient, and have a
 * thread of their own; so have their STOREs, which are long on their way back. They and tiles pass
 * each other everywhere: no turn is submitted before those that it needs have ended. A slow device
 * gets few at a time, since one of another job stands behind all that are there; and from the
 * queues jobs go in turn.
 *
 * A tile that was submitted is always waited for, whatever became of its job: until then the device
 * writes into its slot. One that still waits for a flight is given back without having been there
 * when its job was stopped.
 *
 * An error that loses the context ends the process (fault.h). After any other error of a submission
 * the streams are waited for, so that nothing of the tile is with the device, and its job fails.
 */
#include "daemon/worker/cuda/engine.h"
#include "daemon/worker/cuda/fault.h"
#include "daemon/worker/trace.h"
#include "daemon/worker/turns/scheduler.h"
#include "proto/util.h"

#include <string.h>

#define THREAD_STACK_BYTES (1024u * 1024u) /* the driver says nowhere what it needs */

/* Flights ------------------------------------------------------------------------------------ */

int cuda_flight_init(struct cuda_flight *f, bool is_small)
{
    int r = 0;
    *f = (struct cuda_flight){.tile = NULL};
    for (unsigned i = is_small ? MARK_END : 0; i < MARK_N && !r; i++)
        r = cuda_event_new(i == MARK_END, &f->marks[i]);
    return r;
}

static int record(const struct cuda_flight *f, enum cuda_mark mark, cuda_stream stream)
{
    return f->marks[mark] ? cuda_event_record(f->marks[mark], stream) : 0;
}

/* What has but the last mark has but one stream, too. */
static int wait_at(const struct cuda_flight *f, enum cuda_mark mark, cuda_stream stream)
{
    return f->marks[mark] ? cuda_stream_wait(stream, f->marks[mark]) : 0;
}

void cuda_flight_deinit(struct cuda_flight *f)
{
    for (unsigned i = 0; i < MARK_N; i++)
        if (f->marks[i])
            cuda_event_free(steal_ptr(f->marks[i]));
}

static int submit_to(struct cuda_flight *f, const struct cuda_work *work, cuda_stream stream)
{
    int r = record(f, MARK_BEGIN, stream);
    if (!r)
        r = direct_copy_to(&work->in, work->device_slot, work->code.slot,
                           cuda_tile_to_device_bytes(&work->code), stream);
    return r ? r : record(f, MARK_TO_END, stream);
}

static int submit_kernel(struct cuda_flight *f, const struct cuda_work *work, cuda_stream stream)
{
    int r = wait_at(f, MARK_TO_END, stream);
    if (!r)
        r = cuda_tile_launch(&work->code, work->device_slot, stream);
    return r ? r : record(f, MARK_KERNEL_END, stream);
}

static int submit_from(struct cuda_flight *f, const struct cuda_work *work, cuda_stream stream)
{
    uint64_t offset, n_bytes;
    cuda_tile_from_device(&work->code, &offset, &n_bytes);
    int r = wait_at(f, MARK_KERNEL_END, stream);
    if (!r)
        r = direct_copy_from(&work->out, work->code.slot, work->device_slot, offset, n_bytes,
                             stream);
    return r ? r : record(f, MARK_END, stream);
}

/* A LOAD of a product does not, and so does not wait for what others bring back. */
static bool brings_back(const struct cuda_work *work)
{
    uint64_t offset, n_bytes;
    cuda_tile_from_device(&work->code, &offset, &n_bytes);
    return n_bytes > 0 || work->out.n > 0;
}

static void drain(const struct cuda_flight *f, cuda_stream stream)
{
    int r = cuda_event_record(f->marks[MARK_END], stream);
    if (!r)
        r = cuda_event_wait(f->marks[MARK_END]);
    if (r)
        device_fault("waiting for the device after a failed submission", r);
}

int cuda_flight_submit(struct cuda_flight *f, const struct cuda_work *work, cuda_stream to_device,
                       cuda_stream compute, cuda_stream from_device)
{
    f->is_multiply = false;
    int r = submit_to(f, work, to_device);
    if (!r)
        r = submit_kernel(f, work, compute);
    if (!r)
        r = submit_from(f, work, brings_back(work) ? from_device : compute);
    if (!r)
        return 0;
    if (cuda_error_is_sticky(r))
        device_fault("giving a tile to the device", r);
    drain(f, to_device);
    drain(f, compute);
    drain(f, from_device);
    return r;
}

/* What a tile's first MULTIPLYs set has been read by the STOREs of the tile before. */
static int wait_for_stores(const struct cuda_engine *e, const struct tile *t)
{
    return t->turn.is_first && e->has_stored ? cuda_stream_wait(e->card->products, e->stored) : 0;
}

static int submit_multiply(struct cuda_flight *f, const struct cuda_engine *e, const struct tile *t)
{
    const struct card *card = e->card;
    int r = wait_for_stores(e, t);
    if (!r)
        r = cuda_event_record(f->marks[MARK_BEGIN], card->products);
    if (!r)
        r = cuda_product_multiply(card, t);
    return r ? r : cuda_event_record(f->marks[MARK_END], card->products);
}

/* Like cuda_flight_submit(), for a MULTIPLY. */
static int cuda_flight_multiply(struct cuda_flight *f, const struct cuda_engine *e,
                                const struct tile *t)
{
    f->is_multiply = true;
    int r = submit_multiply(f, e, t);
    if (r && cuda_error_is_sticky(r))
        device_fault("giving a multiplication to the device", r);
    if (r)
        drain(f, e->card->products);
    return r;
}

static int measure_multiply(const struct cuda_flight *f, struct cuda_flight_times *ret)
{
    int r = cuda_event_elapsed_ns(f->marks[MARK_BEGIN], f->marks[MARK_END], &ret->kernel_ns);
    ret->kernel_before_ns = ret->kernel_ns;
    return r;
}

/* The device has ended the flight, which is the line's last one now. A kernel and a copy back begin
 * when what they wait for has ended, or the one before theirs. 0 or a runtime error. */
static int cuda_flight_measure(struct cuda_line *line, struct cuda_flight *f,
                               struct cuda_flight_times *ret)
{
    uint64_t to_kernel_end_ns, behind_ns, since_ns = UINT64_MAX / 2;
    *ret = (struct cuda_flight_times){.to_ns = 0};
    if (f->is_multiply)
        return measure_multiply(f, ret);
    int r = cuda_event_elapsed_ns(f->marks[MARK_BEGIN], f->marks[MARK_TO_END], &ret->to_ns);
    if (!r)
        r = cuda_event_elapsed_ns(f->marks[MARK_TO_END], f->marks[MARK_KERNEL_END],
                                  &to_kernel_end_ns);
    if (!r)
        r = cuda_event_elapsed_ns(f->marks[MARK_KERNEL_END], f->marks[MARK_END], &behind_ns);
    if (!r && line->has_landed)
        r = cuda_event_elapsed_ns(line->landed, f->marks[MARK_END], &since_ns);
    line->has_landed = !r;
    if (r)
        return r;
    uint64_t since_kernel_ns = since_ns + line->behind_kernel_ns;
    ret->kernel_ns = min_u64(to_kernel_end_ns, max_u64(since_kernel_ns, behind_ns) - behind_ns);
    ret->from_ns = min_u64(behind_ns, since_ns);
    ret->kernel_before_ns = ret->kernel_ns + behind_ns;
    ret->to_before_ns = ret->to_ns + to_kernel_end_ns + behind_ns;
    cuda_event landed = line->landed;
    line->landed = f->marks[MARK_END];
    f->marks[MARK_END] = landed;
    line->behind_kernel_ns = behind_ns;
    return 0;
}

/* The trace: by the device's clock, from the moment on the host's at which the last event was seen.
 */

static void add_span(const struct cuda_engine *e, const struct tile *t, enum trace_kind kind,
                     enum trace_lane lane, uint64_t begin_ns, uint64_t duration_ns)
{
    const struct trace_record record = {.begin_ns = begin_ns,
                                        .duration_ns = duration_ns,
                                        .tile = (uint32_t)min_u64(t->index, UINT32_MAX),
                                        .lane = (uint16_t)lane,
                                        .kind = (uint8_t)kind,
                                        .pass = (uint8_t)t->pass};
    trace_add(e->base.trace, t->job->identity.id, &record);
}

/* What began so long before the end that it is before the machine's begin is left out. */
static void add_before(const struct cuda_engine *e, const struct cuda_flight *f,
                       enum trace_kind kind, enum trace_lane lane, uint64_t end_ns,
                       uint64_t before_ns, uint64_t duration_ns)
{
    if (before_ns < end_ns)
        add_span(e, f->tile, kind, lane, end_ns - before_ns, duration_ns);
}

static void trace_flight(const struct cuda_engine *e, const struct cuda_flight *f,
                         const struct cuda_flight_times *times, uint64_t end_ns)
{
    add_before(e, f, TRACE_KERNEL, f->is_multiply ? TRACE_LANE_PRODUCTS : TRACE_LANE_KERNELS,
               end_ns, times->kernel_before_ns, times->kernel_ns);
    if (f->is_multiply)
        return;
    add_before(e, f, TRACE_TO_DEVICE, TRACE_LANE_TO_DEVICE, end_ns, times->to_before_ns,
               times->to_ns);
    add_before(e, f, TRACE_FROM_DEVICE, TRACE_LANE_FROM_DEVICE, end_ns, times->from_ns,
               times->from_ns);
}

/* The rings of flights ----------------------------------------------------------------------- */

/* The device comes to a flight when those before it in its line have landed, whoever's they are:
 * its time counts from then on. */
static void enter_page(const struct cuda_engine *e, unsigned i, const struct tile *t, bool is_first)
{
    uint64_t since_ns = is_first ? clock_ns() : CRASHPAGE_NOT_YET;
    if (e->base.device_pages)
        crashpage_enter(&e->base.device_pages[i], t->job->identity.id, t->index, since_ns,
                        CRASHPAGE_WITH_DEVICE);
}

static void leave_page(const struct cuda_engine *e, unsigned i)
{
    if (e->base.device_pages)
        crashpage_leave(&e->base.device_pages[i]);
}

/* A STORE whose sink is a ring goes in parts, and the last one counts. With a journal others wait
 * for its end, since a MARK does. */
static bool is_last_of_store(const struct tile *t)
{
    return t->product && t->turn.step == PRODUCT_STORE && t->step == WALK_COMPUTE &&
           t->grain == t->end;
}

static struct cuda_line *line_of(struct cuda_engine *e, const struct tile *t)
{
    return !t->slot ? &e->multiplies : is_last_of_store(t) ? &e->stores : &e->tiles;
}

static uint64_t expected_ns(const struct cuda_engine *e, const struct tile *t)
{
    return t->slot ? 0 : cuda_product_expected_ns(e->card, t);
}

static bool has_room(const struct cuda_line *line, uint64_t ns)
{
    return line->n_flying == 0 ||
           (line->n_flying < line->most && line->flying_ns + ns <= CUDA_MULTIPLIES_NS);
}

static int submit(struct cuda_engine *e, struct cuda_flight *f, struct tile *t)
{
    const struct card *card = e->card;
    f->expected_ns = expected_ns(e, t);
    return t->slot ? cuda_flight_submit(f, cuda_work_of(e, t), card->to_device, card->compute,
                                        card->from_device)
                   : cuda_flight_multiply(f, e, t);
}

/* The STORE's kernel is in its stream. */
static void leave_carry(struct cuda_engine *e, struct tile *t)
{
    int r = cuda_event_record(e->stored, e->card->compute);
    if (r)
        device_fault("marking where a result was read", r);
    e->has_stored = true;
    sched_device_left(e->sched, t);
}

/* Its line has room. 0: the tile is with the device; else it is not, and the
 * error. */
static int fly(struct cuda_engine *e, struct tile *t)
{
    struct cuda_line *line = line_of(e, t);
    unsigned i = line->first + (line->oldest + line->n_flying) % line->most;
    struct cuda_flight *f = &e->flights[i];
    enter_page(e, i, t, line->n_flying == 0);
    uint64_t begin_ns = clock_ns();
    int r = submit(e, f, t);
    add_span(e, t, TRACE_SUBMIT, TRACE_LANE_SUBMISSIONS, begin_ns, clock_ns() - begin_ns);
    if (r) {
        leave_page(e, i);
        return r;
    }
    f->tile = t;
    t->job->last_flight = ++e->n_flown;
    line->n_flying++;
    line->flying_ns += f->expected_ns;
    pthread_cond_signal(&line->wake);
    if (line == &e->stores)
        leave_carry(e, t);
    return 0;
}

void cuda_pipeline_submit(struct cuda_engine *e, struct tile *t)
{
    struct cuda_line *line = line_of(e, t);
    int r = 0;
    pthread_mutex_lock(&e->lock);
    if (line->queue || !has_room(line, expected_ns(e, t))) {
        t->next = NULL;
        *line->queue_end = t;
        line->queue_end = &t->next;
    } else {
        r = fly(e, t);
    }
    pthread_mutex_unlock(&e->lock);
    if (r)
        sched_device_done(e->sched, t, r);
}

/* The oldest one of the job of which none has gone for longest. */
static struct tile **next_queued(struct cuda_line *line)
{
    struct tile **found = &line->queue;
    for (struct tile **p = found; *p; p = &(*p)->next)
        if ((*p)->job->last_flight < (*found)->job->last_flight)
            found = p;
    return found;
}

static struct tile *take_queued(struct cuda_line *line, struct tile **at)
{
    struct tile *t = *at;
    *at = t->next;
    if (!t->next)
        line->queue_end = at;
    t->next = NULL;
    return t;
}

/* Queued tiles into free flights. Those that are not with the device after all are given back. */
static void fly_queued(struct cuda_engine *e, struct cuda_line *line)
{
    while (line->queue) {
        struct tile **at = next_queued(line);
        if (!has_room(line, expected_ns(e, *at)))
            return;
        struct tile *t = take_queued(line, at);
        bool is_stopped = atomic_load_explicit(&t->job->is_stopped, memory_order_relaxed);
        int r = is_stopped ? 0 : fly(e, t);
        if (is_stopped || r)
            sched_device_done(e->sched, t, r);
    }
}

/* Waits for the oldest flight, without the lock meanwhile. */
static struct tile *land(struct cuda_line *line, int *ret_error)
{
    struct cuda_engine *e = line->engine;
    unsigned i = line->first + line->oldest;
    struct cuda_flight *f = &e->flights[i];
    struct tile *t = f->tile;
    pthread_mutex_unlock(&e->lock);
    struct cuda_flight_times times;
    int r = cuda_event_wait(f->marks[MARK_END]);
    uint64_t end_ns = clock_ns();
    if (!r)
        r = cuda_flight_measure(line, f, &times);
    if (!r) {
        t->measure.to_device_ns += times.to_ns;
        t->measure.kernel_ns += times.kernel_ns;
        t->measure.from_device_ns += times.from_ns;
        trace_flight(e, f, &times, end_ns);
    }
    if (r && cuda_error_is_sticky(r))
        device_fault("waiting for a tile", r);
    leave_page(e, i);
    pthread_mutex_lock(&e->lock);
    f->tile = NULL;
    line->oldest = (line->oldest + 1) % line->most;
    line->n_flying--;
    if (e->base.device_pages && line->n_flying > 0)
        crashpage_go_on(&e->base.device_pages[line->first + line->oldest], clock_ns());
    line->flying_ns -= f->expected_ns;
    *ret_error = r;
    return t;
}

static void *device_main(void *argument)
{
    struct cuda_line *line = argument;
    struct cuda_engine *e = line->engine;
    pthread_mutex_lock(&e->lock);
    while (!e->is_stopping || line->n_flying > 0) {
        int r = 0;
        if (line->n_flying == 0) {
            pthread_cond_wait(&line->wake, &e->lock);
            continue;
        }
        struct tile *t = land(line, &r);
        fly_queued(e, line);
        pthread_mutex_unlock(&e->lock);
        sched_device_done(e->sched, t, r);
        pthread_mutex_lock(&e->lock);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

static int start_line(struct cuda_line *line)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    int r = pthread_create(&line->thread, &attributes, device_main, line);
    pthread_attr_destroy(&attributes);
    if (r)
        return -r;
    line->has_thread = true;
    pthread_setname_np(line->thread, line->name);
    return 0;
}

int cuda_pipeline_start(struct cuda_engine *e)
{
    int r = start_line(&e->tiles);
    if (!r)
        r = start_line(&e->multiplies);
    return r ? r : start_line(&e->stores);
}

static void stop_line(struct cuda_line *line)
{
    if (!line->has_thread)
        return;
    pthread_mutex_lock(&line->engine->lock);
    line->engine->is_stopping = true;
    pthread_cond_signal(&line->wake);
    pthread_mutex_unlock(&line->engine->lock);
    pthread_join(line->thread, NULL);
    line->has_thread = false;
}

void cuda_pipeline_stop(struct cuda_engine *e)
{
    stop_line(&e->tiles);
    stop_line(&e->multiplies);
    stop_line(&e->stores);
}
