/* The cache of registered windows.
 *
 *     IDLE --second job--> WANTED --helper--> REGISTERING --+--> READY --unused, or in the way-->
 *       ^                    |                              |      LEAVING --> IDLE
 *       |                    +--- no room in the budget     +--> FAILED --a while--> IDLE
 *       +--------------------+
 *
 * Registering pins pages, takes the driver milliseconds and fails for reasons of its own (limits of
 * the system, memory that the driver cannot use). So it is worth it only for memory that is used
 * again: the second job that touches a window asks for it, a helper thread does it, and meanwhile
 * everybody goes on staging. A window that could not be registered is left alone for a while.
 *
 * The budget bounds what is pinned, since pinned pages cannot be swapped out. Where it is used up,
 * the window that was unused for the longest time leaves, if it was for a moment; else the new one
 * is not registered: windows that push each other out would cost more than staging.
 *
 * A window changes its state under the lock; the driver is called without it, in REGISTERING and
 * LEAVING, which are the helper's alone. What is held (n_holds) never leaves. Before its memory is
 * unmapped a region's windows are waited for and unregistered.
 *
 * Called by the engine: regions by the main thread, hold and release by the threads that stage.
 */
#include "daemon/worker/cuda/registered.h"
#include "daemon/worker/cuda/fault.h"
#include "daemon/worker/cuda/card_sizes.h"
#include "daemon/worker/io/port.h"
#include "proto/util.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define MAX_DEFAULT_BYTES (UINT64_C(8) << 30)
#define PAGE_BYTES        4096u
#define RETRY_NS          UINT64_C(60000000000)
#define SECOND_NS         UINT64_C(1000000000)
#define NOBODY            UINT64_MAX

enum window_state { IDLE, WANTED, REGISTERING, READY, LEAVING, FAILED };

struct registered_window {
    enum window_state state;
    bool is_writable;
    unsigned n_holds;
    char *base;
    uint64_t n_bytes;
    uint64_t last_job, used_ns; /* used_ns: FAILED: when it failed */
};

struct mapping {
    char *base;
    uint64_t n_bytes;
    uint64_t n_windows;
    struct registered_window *windows;
};

struct registered {
    struct registered_config config;
    pthread_mutex_t lock;
    pthread_cond_t wake, changed; /* the helper; whoever waits for it */
    pthread_t helper;
    bool is_stopping;
    uint64_t registered_bytes;
    struct mapping *mappings; /* by address */
    unsigned n_mappings, n_room;
};

uint64_t registered_default_bytes(void)
{
    uint64_t total, available;
    card_host_memory(&total, &available);
    return min_u64(total / 4, MAX_DEFAULT_BYTES);
}

/* Windows -------------------------------------------------------------------------------------- */

/* The first mapping that begins behind the address. */
static unsigned mapping_behind(const struct registered *r, const char *address)
{
    unsigned low = 0, high = r->n_mappings;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (r->mappings[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The window that has all the bytes, or NULL. */
static struct registered_window *window_of(const struct registered *r, const char *low,
                                           uint64_t n_bytes)
{
    unsigned i = mapping_behind(r, low);
    if (i == 0)
        return NULL;
    const struct mapping *m = &r->mappings[i - 1];
    uint64_t offset = (uint64_t)(low - m->base);
    if (offset >= m->n_bytes)
        return NULL;
    struct registered_window *w = &m->windows[offset / r->config.window_bytes];
    return n_bytes <= w->n_bytes - (uint64_t)(low - w->base) ? w : NULL;
}

static void set_state(struct registered *r, struct registered_window *w, enum window_state state)
{
    w->state = state;
    pthread_cond_broadcast(&r->changed);
}

/* The driver refuses strange memory with strange words: whether the context is lost is told by
 * another call. */
static bool is_lost(int error)
{
    uint64_t free_bytes, total_bytes;
    return cuda_error_is_sticky(error) &&
           cuda_error_is_sticky(cuda_memory_info(&free_bytes, &total_bytes));
}

/* Lock held, and released around the driver's call. */
static void leave(struct registered *r, struct registered_window *w)
{
    assert(w->state == READY && w->n_holds == 0);
    set_state(r, w, LEAVING);
    pthread_mutex_unlock(&r->lock);
    int error = cuda_host_unregister(w->base);
    if (is_lost(error))
        device_fault("unregistering a region", error);
    pthread_mutex_lock(&r->lock);
    r->registered_bytes -= w->n_bytes;
    w->last_job = NOBODY;
    set_state(r, w, IDLE);
}

static void enter(struct registered *r, struct registered_window *w)
{
    set_state(r, w, REGISTERING);
    r->registered_bytes += w->n_bytes;
    pthread_mutex_unlock(&r->lock);
    int error = cuda_host_register(w->base, w->n_bytes, !w->is_writable);
    if (is_lost(error))
        device_fault("registering a region", error);
    pthread_mutex_lock(&r->lock);
    w->used_ns = clock_ns();
    if (error)
        r->registered_bytes -= w->n_bytes;
    set_state(r, w, error ? FAILED : READY);
}

/* The helper ----------------------------------------------------------------------------------- */

/* Of the windows in a state, the one that was unused for the longest time; NULL: none. */
static struct registered_window *find_window(const struct registered *r, enum window_state state,
                                             bool must_be_free)
{
    struct registered_window *found = NULL;
    for (unsigned i = 0; i < r->n_mappings; i++) {
        const struct mapping *m = &r->mappings[i];
        for (uint64_t k = 0; k < m->n_windows; k++) {
            struct registered_window *w = &m->windows[k];
            if (w->state != state || (must_be_free && w->n_holds > 0))
                continue;
            if (!found || w->used_ns < found->used_ns)
                found = w;
        }
    }
    return found;
}

static bool was_unused_for(const struct registered_window *w, uint64_t ns)
{
    return clock_ns() - w->used_ns >= ns;
}

/* Makes room, or does not: then the window is staged until it is asked for again. The lock may be
 * released in between: true means that the caller looks again. */
static bool make_room(struct registered *r, struct registered_window *wanted)
{
    if (wanted->n_bytes <= r->config.budget_bytes &&
        r->registered_bytes <= r->config.budget_bytes - wanted->n_bytes)
        return false;
    struct registered_window *oldest = find_window(r, READY, true);
    if (wanted->n_bytes <= r->config.budget_bytes && oldest &&
        was_unused_for(oldest, min_u64(SECOND_NS, r->config.idle_ns))) {
        leave(r, oldest);
        return true;
    }
    wanted->last_job = NOBODY;
    set_state(r, wanted, IDLE);
    return true;
}

/* One step; false: there is nothing to do now. */
static bool help(struct registered *r)
{
    struct registered_window *wanted = find_window(r, WANTED, false);
    if (wanted) {
        if (!make_room(r, wanted))
            enter(r, wanted);
        return true;
    }
    struct registered_window *oldest = find_window(r, READY, true);
    if (oldest && was_unused_for(oldest, r->config.idle_ns)) {
        leave(r, oldest);
        return true;
    }
    return false;
}

static void wait_for_work(struct registered *r)
{
    struct timespec until;
    if (r->registered_bytes == 0) {
        pthread_cond_wait(&r->wake, &r->lock);
        return;
    }
    uint64_t at = clock_ns() + min_u64(SECOND_NS, r->config.idle_ns);
    until.tv_sec = (time_t)(at / SECOND_NS);
    until.tv_nsec = (long)(at % SECOND_NS);
    pthread_cond_timedwait(&r->wake, &r->lock, &until);
}

static void *helper_main(void *argument)
{
    struct registered *r = argument;
    pthread_mutex_lock(&r->lock);
    while (!r->is_stopping)
        if (!help(r))
            wait_for_work(r);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static void init_locks(struct registered *r)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&r->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_cond_init(&r->changed, NULL);
}

static void deinit_locks(struct registered *r)
{
    pthread_cond_destroy(&r->changed);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->lock);
}

int registered_new(const struct registered_config *config, struct registered **ret_registered)
{
    struct registered *r = calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    assert(config->window_bytes > 0 && config->window_bytes % PAGE_BYTES == 0);
    r->config = *config;
    init_locks(r);
    int error = pthread_create(&r->helper, NULL, helper_main, r);
    if (error) {
        deinit_locks(r);
        free(r);
        return -error;
    }
    pthread_setname_np(r->helper, "register");
    *ret_registered = r;
    return 0;
}

struct registered *registered_free(struct registered *r)
{
    if (!r)
        return NULL;
    pthread_mutex_lock(&r->lock);
    r->is_stopping = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->helper, NULL);
    while (r->n_mappings > 0)
        registered_remove(r, r->mappings[0].base);
    free(r->mappings);
    deinit_locks(r);
    free(r);
    return NULL;
}

/* Regions -------------------------------------------------------------------------------------- */

static int make_mapping(const struct registered *r, char *base, uint64_t size_bytes,
                        bool is_writable, struct mapping *ret_mapping)
{
    uint64_t n_bytes = round_up_u64(size_bytes, PAGE_BYTES), window = r->config.window_bytes;
    struct mapping m = {base, n_bytes, (n_bytes + window - 1) / window, NULL};
    m.windows = calloc(m.n_windows, sizeof(*m.windows));
    if (!m.windows)
        return -ENOMEM;
    for (uint64_t i = 0; i < m.n_windows; i++)
        m.windows[i] = (struct registered_window){.base = base + i * window,
                                                  .n_bytes = min_u64(window, n_bytes - i * window),
                                                  .is_writable = is_writable,
                                                  .last_job = NOBODY};
    *ret_mapping = m;
    return 0;
}

static int insert(struct registered *r, const struct mapping *m)
{
    if (r->n_mappings == r->n_room) {
        unsigned n_room = r->n_room ? 2 * r->n_room : 16;
        struct mapping *more = realloc(r->mappings, n_room * sizeof(*more));
        if (!more)
            return -ENOMEM;
        r->mappings = more;
        r->n_room = n_room;
    }
    unsigned at = mapping_behind(r, m->base);
    memmove(&r->mappings[at + 1], &r->mappings[at], (r->n_mappings - at) * sizeof(*m));
    r->mappings[at] = *m;
    r->n_mappings++;
    return 0;
}

int registered_add(struct registered *r, void *base, uint64_t size_bytes, bool is_writable)
{
    struct mapping m;
    int error = make_mapping(r, base, size_bytes, is_writable, &m);
    if (error)
        return error;
    pthread_mutex_lock(&r->lock);
    error = insert(r, &m);
    pthread_mutex_unlock(&r->lock);
    if (error)
        free(m.windows);
    return error;
}

static void let_go(struct registered *r, struct registered_window *w)
{
    while (w->state == REGISTERING || w->state == LEAVING)
        pthread_cond_wait(&r->changed, &r->lock);
    if (w->state == READY)
        leave(r, w);
    w->state = FAILED; /* the helper must not begin with it again */
}

void registered_remove(struct registered *r, const void *base)
{
    pthread_mutex_lock(&r->lock);
    unsigned at = mapping_behind(r, base);
    if (at > 0 && r->mappings[at - 1].base == base) {
        struct mapping m = r->mappings[--at];
        for (uint64_t i = 0; i < m.n_windows; i++)
            let_go(r, &m.windows[i]);
        r->n_mappings--;
        memmove(&r->mappings[at], &r->mappings[at + 1], (r->n_mappings - at) * sizeof(m));
        free(m.windows);
    }
    pthread_mutex_unlock(&r->lock);
}

/* Uses ----------------------------------------------------------------------------------------- */

/* The first job that uses a window only leaves its number. */
static void ask_for(struct registered *r, struct registered_window *w, uint64_t job)
{
    if (w->state == FAILED && was_unused_for(w, RETRY_NS)) {
        w->state = IDLE;
        w->last_job = NOBODY;
    }
    if (w->state != IDLE)
        return;
    if (w->last_job != NOBODY && w->last_job != job) {
        w->state = WANTED;
        pthread_cond_signal(&r->wake);
    }
    w->last_job = job;
}

struct registered_window *registered_hold(struct registered *r, const void *low, uint64_t n_bytes,
                                          uint64_t job)
{
    if (!r)
        return NULL;
    pthread_mutex_lock(&r->lock);
    struct registered_window *w = window_of(r, low, n_bytes);
    if (w && w->state == READY) {
        w->n_holds++;
        w->used_ns = clock_ns();
    } else if (w) {
        ask_for(r, w, job);
        w = NULL;
    }
    pthread_mutex_unlock(&r->lock);
    return w;
}

void registered_release(struct registered *r, struct registered_window *w)
{
    pthread_mutex_lock(&r->lock);
    assert(w->n_holds > 0);
    w->n_holds--;
    w->used_ns = clock_ns();
    pthread_mutex_unlock(&r->lock);
}
