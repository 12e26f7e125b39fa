/* What the device's memory is made of.
 *
 *     before  -> context -> warm-up -> slabs -> cuBLAS -> streams, events -> baseline
 *             |          |          |        |         |
 *             context    modules    pool     modules   other
 *
 * Each part is what the process's figure grew by in a step, as the driver tells it; the pool is
 * what was asked for, and what is left over is `other`. So the parts add up to the process's
 * figure, and with what is free, reserved and others' to the whole device: both hold by
 * construction, whatever the source. The figures of a moment are read one after the other, and
 * other processes go on in between; where that would make a part negative it is 0 and its neighbour
 * smaller.
 *
 * Where NVML sees another device than CUDA does (a part of one, MIG) its totals differ, and it is
 * not used.
 *
 * From then on a thread of its own asks the driver: NVML may take its time, and whoever wants to
 * know is the main thread, which everybody waits for.
 *
 * Called by card.c; refresh and pack by the main thread alone.
 */
#include "daemon/worker/cuda/card_memory.h"
#include "daemon/worker/io/port.h"
#include "proto/util.h"
#include "proto/wire/pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REFRESH_NS         UINT64_C(500000000)
#define WAIT_NS            UINT64_C(3000000) /* for an answer */
#define THREAD_STACK_BYTES (1024u * 1024u)

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static const char *source_name(enum card_memory_source source)
{
    static const char *const names[] = {"driver", "difference", "sum"};
    return names[source];
}

/* The process's figure by the driver's list. */
static bool find_process(const struct card_memory *m, uint64_t *ret_bytes)
{
    struct nvml_process list[NVML_MAX_PROCESSES];
    unsigned n = 0;
    if (!m->nvml || nvml_processes(m->nvml, list, &n) != 0)
        return false;
    for (unsigned i = 0; i < n; i++) {
        if (list[i].pid != getpid() || list[i].bytes == 0)
            continue;
        *ret_bytes = list[i].bytes;
        return true;
    }
    return false;
}

static bool find_difference(const struct card_memory *m, uint64_t *ret_bytes)
{
    struct nvml_memory memory;
    uint64_t before;
    if (!m->nvml || !nvml_used_before(m->nvml, &before) || nvml_memory(m->nvml, &memory) != 0)
        return false;
    *ret_bytes = less(memory.used_bytes, before);
    return true;
}

static void read_process(struct card_memory *m)
{
    uint64_t bytes;
    if ((m->source == CARD_BY_DRIVER && find_process(m, &bytes)) ||
        (m->source == CARD_BY_DIFFERENCE && find_difference(m, &bytes)))
        m->process_bytes = bytes;
}

/* Device-wide; what was known stays where the driver does not answer. */
static void read_free(struct card_memory *m)
{
    struct nvml_memory memory;
    uint64_t free_bytes, total_bytes;
    if (m->nvml && nvml_memory(m->nvml, &memory) == 0) {
        m->total_bytes = memory.total_bytes;
        m->free_bytes = memory.free_bytes;
        m->reserved_bytes = memory.reserved_bytes;
    } else if (cuda_memory_info(&free_bytes, &total_bytes) == 0) {
        m->total_bytes = total_bytes;
        m->free_bytes = free_bytes;
        m->reserved_bytes = 0;
    }
}

static void add_up(struct card_memory *m)
{
    uint64_t ours = m->reserved_bytes + m->process_bytes;
    m->free_bytes = min_u64(m->free_bytes, less(m->total_bytes, ours));
    m->used_by_others_bytes = less(m->total_bytes, ours + m->free_bytes);
}

static void read_holders(struct card_memory *m)
{
    struct nvml_process list[NVML_MAX_PROCESSES];
    unsigned n = 0;
    m->n_holders = 0;
    if (!m->nvml || nvml_processes(m->nvml, list, &n) != 0)
        return;
    for (unsigned i = 0; i < n && m->n_holders < CARD_MAX_HOLDERS; i++)
        if (list[i].pid != getpid())
            m->holders[m->n_holders++] = list[i];
}

static void init_locks(struct card_memory *m)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->wake, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&m->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void card_memory_begin(struct card_memory *m)
{
    *m = (struct card_memory){.source = CARD_BY_SUM};
    init_locks(m);
    if (nvml_open(&m->nvml) != 0)
        m->nvml = NULL;
}

static bool is_same_device(const struct card_memory *m, const struct cuda_device *device)
{
    struct nvml_memory memory;
    if (nvml_choose(m->nvml, device->pci) != 0 || nvml_memory(m->nvml, &memory) != 0)
        return false;
    uint64_t larger = max_u64(memory.total_bytes, device->total_bytes);
    uint64_t smaller = min_u64(memory.total_bytes, device->total_bytes);
    return larger - smaller <= larger / 8; /* CUDA leaves out what is reserved */
}

void card_memory_has_context(struct card_memory *m, const struct cuda_device *device)
{
    uint64_t bytes;
    if (m->nvml && !is_same_device(m, device))
        m->nvml = nvml_close(m->nvml);
    if (find_process(m, &bytes))
        m->source = CARD_BY_DRIVER;
    else if (find_difference(m, &bytes))
        m->source = CARD_BY_DIFFERENCE;
    else
        bytes = 0;
    m->context_bytes = m->process_bytes = bytes;
    read_free(m);
}

void card_memory_has_modules(struct card_memory *m)
{
    uint64_t free_before = m->free_bytes;
    read_process(m);
    read_free(m);
    m->modules_bytes = m->source == CARD_BY_SUM ? less(free_before, m->free_bytes)
                                                : less(m->process_bytes, m->context_bytes);
}

/* Of what a step's growth is told by. */
static uint64_t figure(const struct card_memory *m)
{
    return m->source == CARD_BY_SUM ? m->free_bytes : m->process_bytes;
}

void card_memory_has_slabs(struct card_memory *m)
{
    read_process(m);
    read_free(m);
    m->before_bytes = figure(m);
}

void card_memory_has_blas(struct card_memory *m)
{
    read_process(m);
    read_free(m);
    m->modules_bytes += m->source == CARD_BY_SUM ? less(m->before_bytes, figure(m))
                                                 : less(figure(m), m->before_bytes);
}

/* Without the lock, which the main thread may want meanwhile. */
static void ask_driver(struct card_memory *m)
{
    struct card_memory now = {.nvml = m->nvml,
                              .source = m->source,
                              .total_bytes = m->total_bytes,
                              .free_bytes = m->free_bytes,
                              .reserved_bytes = m->reserved_bytes,
                              .process_bytes = m->process_bytes};
    pthread_mutex_unlock(&m->lock);
    read_process(&now);
    read_free(&now);
    add_up(&now);
    pthread_mutex_lock(&m->lock);
    m->total_bytes = now.total_bytes;
    m->free_bytes = now.free_bytes;
    m->reserved_bytes = now.reserved_bytes;
    m->process_bytes = now.process_bytes;
    m->used_by_others_bytes = now.used_by_others_bytes;
    m->read_ns = clock_ns();
}

static void *thread_main(void *argument)
{
    struct card_memory *m = argument;
    pthread_mutex_lock(&m->lock);
    while (!m->is_stopping) {
        if (!m->is_asked) {
            pthread_cond_wait(&m->wake, &m->lock);
            continue;
        }
        ask_driver(m);
        m->is_asked = false;
        pthread_cond_signal(&m->changed);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* Without it the figures stay what they were. */
static void start_thread(struct card_memory *m)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    m->has_thread = pthread_create(&m->thread, &attributes, thread_main, m) == 0;
    pthread_attr_destroy(&attributes);
    if (m->has_thread)
        pthread_setname_np(m->thread, "device-memory");
}

static void stop_thread(struct card_memory *m)
{
    if (!m->has_thread)
        return;
    pthread_mutex_lock(&m->lock);
    m->is_stopping = true;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
    pthread_join(m->thread, NULL);
}

void card_memory_has_all(struct card_memory *m, const struct cuda_allocations *allocations)
{
    m->pool_bytes = allocations->device_bytes;
    m->pinned_bytes = allocations->host_bytes;
    read_process(m);
    uint64_t parts = m->context_bytes + m->modules_bytes + m->pool_bytes;
    if (m->source == CARD_BY_SUM || m->process_bytes < parts) {
        m->source = CARD_BY_SUM; /* the driver's figure cannot be right */
        m->context_bytes = 0;
        parts = m->process_bytes = m->modules_bytes + m->pool_bytes;
    }
    m->other_bytes = m->process_bytes - parts;
    read_free(m);
    add_up(m);
    read_holders(m);
    m->read_ns = clock_ns();
    start_thread(m);
}

void card_memory_end(struct card_memory *m)
{
    stop_thread(m);
    m->nvml = nvml_close(m->nvml);
    pthread_cond_destroy(&m->changed);
    pthread_cond_destroy(&m->wake);
    pthread_mutex_destroy(&m->lock);
}

static struct timespec in(uint64_t ns)
{
    uint64_t then = clock_ns() + ns;
    return (struct timespec){.tv_sec = (time_t)(then / 1000000000),
                             .tv_nsec = (long)(then % 1000000000)};
}

void card_memory_refresh(struct card_memory *m, uint64_t *ret_process_bytes,
                         uint64_t *ret_free_bytes)
{
    struct timespec end = in(WAIT_NS);
    pthread_mutex_lock(&m->lock);
    if (m->has_thread && clock_ns() - m->read_ns >= REFRESH_NS) {
        m->is_asked = true;
        pthread_cond_signal(&m->wake);
    }
    while (m->is_asked && pthread_cond_timedwait(&m->changed, &m->lock, &end) == 0)
        ;
    *ret_process_bytes = m->process_bytes;
    *ret_free_bytes = m->free_bytes;
    pthread_mutex_unlock(&m->lock);
}

void card_memory_holders(struct card_memory *m, char *ret_text, size_t n_bytes)
{
    size_t used = 0;
    ret_text[0] = '\0';
    read_holders(m);
    for (unsigned i = 0; i < m->n_holders && used < n_bytes; i++) {
        const struct nvml_process *p = &m->holders[i];
        used += (size_t)snprintf(ret_text + used, n_bytes - used, "%spid %d (%s)", i ? ", " : "",
                                 (int)p->pid, p->name[0] ? p->name : "name not readable");
        if (p->bytes > 0 && used < n_bytes)
            used +=
                (size_t)snprintf(ret_text + used, n_bytes - used, " %" PRIu64 " bytes", p->bytes);
    }
}

static void pack_holders(const struct card_memory *m, msgpack_packer *p)
{
    pack_str(p, "holders");
    msgpack_pack_array(p, m->n_holders);
    for (unsigned i = 0; i < m->n_holders; i++) {
        msgpack_pack_map(p, 3);
        pack_key_i64(p, "pid", m->holders[i].pid);
        pack_key_str(p, "name", m->holders[i].name);
        pack_key_u64(p, "bytes", m->holders[i].bytes);
    }
}

void card_memory_pack(const struct card_memory *m, msgpack_packer *p)
{
    pack_str(p, "memory");
    msgpack_pack_map(p, 12);
    pack_key_u64(p, "total", m->total_bytes);
    pack_key_u64(p, "free", m->free_bytes);
    pack_key_u64(p, "reserved", m->reserved_bytes);
    pack_key_u64(p, "used_by_others", m->used_by_others_bytes);
    pack_key_u64(p, "process", m->process_bytes);
    pack_key_str(p, "process_source", source_name(m->source));
    pack_key_u64(p, "context", m->context_bytes);
    pack_key_u64(p, "modules", m->modules_bytes);
    pack_key_u64(p, "pool", m->pool_bytes);
    pack_key_u64(p, "other", m->other_bytes);
    pack_key_u64(p, "pinned", m->pinned_bytes);
    pack_holders(m, p);
}
