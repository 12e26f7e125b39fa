/* A test double of the part of the CUDA runtime that kernels/cuda/runtime.c calls, on host memory,
 * linked in the place of NVIDIA's library, under its names. Programs with it run everything that
 * the CUDA worker does on the host, without a device. Kernels are host code (cuda_host_launch()).
 *
 * Device memory has two places: the address that is given out, where nothing may be read or written
 * (a host that follows it crashes), and the real memory, known to copies and kernels alone. Streams
 * are queues with a thread each. Order is checked when an operation is put into a queue, by vector
 * clocks: what it reads must have been written, and what it writes must have been read, by
 * operations that end before it by the rules of streams and events; luck in time does not count
 * (order.c). A fault of the program is said on stderr and aborts: wrong order, memory that is not
 * pinned, a thread on a device that nobody opened, a slot that was written to while it was being
 * copied.
 *
 * GPUARRAYD_DOUBLE says what there is and what goes wrong (settings.c).
 */
#include "tests/double/internal.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct state the_double = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .recorded = PTHREAD_COND_INITIALIZER,
    .stats = &the_double.own_stats,
};

static pthread_once_t settings_once = PTHREAD_ONCE_INIT;
static _Thread_local int thread_device;
static _Thread_local cudaError_t thread_error;

_Noreturn void double_abort(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int used = snprintf(text, sizeof text, "cudart double: ");
    used += vsnprintf(text + used, sizeof text - (size_t)used - 1, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s\n", text);
    const char *path = the_double.settings.report;
    FILE *report = *path ? fopen(path, "ae") : NULL;
    if (report) {
        fprintf(report, "%s\n", text);
        fclose(report);
    }
    abort();
}

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool is_armed(void)
{
    const char *path = the_double.settings.armed;
    return !*path || file_exists(path);
}

bool is_nth(uint64_t setting, uint64_t *count)
{
    if (!setting || !is_armed())
        return false;
    ++*count;
    return setting == EVERY || setting == *count;
}

static void read_settings(void)
{
    settings_read(&the_double.settings);
    const char *name = the_double.settings.machine;
    the_double.timeline.machine = *name ? timeline_find(name) : NULL;
    if (*name && !the_double.timeline.machine)
        double_abort("there is no machine %s", name);
}

static cudaError_t absence(void)
{
    const struct settings *s = &the_double.settings;
    if (s->no_driver || s->old_driver)
        return cudaErrorInsufficientDriver;
    if (*s->absent_until && !file_exists(s->absent_until))
        return cudaErrorNoDevice;
    char lost[sizeof s->back + 8];
    snprintf(lost, sizeof lost, "%s.lost", s->back);
    if (*s->back && file_exists(lost) && !file_exists(s->back))
        return cudaErrorNoDevice;
    return s->devices == 0 ? cudaErrorNoDevice : cudaSuccess;
}

static bool has_any_context_locked(void)
{
    for (unsigned i = 0; i < 16; i++)
        if (the_double.has_context[i])
            return true;
    return false;
}

cudaError_t double_enter(bool is_context)
{
    pthread_once(&settings_once, read_settings);
    pthread_mutex_lock(&the_double.lock);
    if (the_double.sticky)
        return the_double.sticky;
    if (!has_any_context_locked()) {
        const cudaError_t error = absence();
        if (error)
            return error;
    }
    if (is_context && !the_double.has_context[thread_device])
        double_abort("a call in a thread that chose no device would make a second context, on "
                     "device %d",
                     thread_device);
    return cudaSuccess;
}

cudaError_t double_leave(cudaError_t error)
{
    pthread_mutex_unlock(&the_double.lock);
    if (error)
        thread_error = error;
    return error;
}

int double_device(void)
{
    return thread_device;
}

void double_allocates_locked(const char *what)
{
    const struct double_stats *s = the_double.stats;
    const uint64_t n_calls =
        s->n_mallocs + s->n_host_allocs + s->n_registrations + s->n_streams + s->n_events;
    if (the_double.settings.allocations && n_calls > the_double.settings.allocations)
        double_abort("%s allocates after the baseline: call %llu", what,
                     (unsigned long long)n_calls);
}

struct double_stats double_stats(void)
{
    pthread_mutex_lock(&the_double.lock);
    const struct double_stats stats = *the_double.stats;
    pthread_mutex_unlock(&the_double.lock);
    return stats;
}

/* Counters go where tests can read them while the program runs. */
static void map_stats_locked(int device)
{
    char path[sizeof the_double.settings.stats + 16];
    if (!*the_double.settings.stats || the_double.stats != &the_double.own_stats)
        return;
    snprintf(path, sizeof path, "%s.%d", the_double.settings.stats, device);
    unlink(path); /* of an earlier worker, which may still be there */
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    void *memory = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, sizeof(struct double_stats)) == 0)
        memory = mmap(NULL, sizeof(struct double_stats), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        double_abort("%s cannot be made", path);
    close(fd);
    the_double.stats = memory;
    *the_double.stats = the_double.own_stats;
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = thread_error;
    thread_error = cudaSuccess;
    return error;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    pthread_once(&settings_once, read_settings);
    const struct settings *s = &the_double.settings;
    *version = s->no_driver ? 0 : s->old_driver ? 11040 : CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    const cudaError_t error = double_enter(false);
    if (!error)
        *count = (int)the_double.settings.devices;
    return double_leave(error);
}

static cudaError_t check_index(cudaError_t error, int device)
{
    if (!error && (device < 0 || device >= 16 || (uint64_t)device >= the_double.settings.devices))
        return cudaErrorInvalidDevice;
    return error;
}

cudaError_t cudaSetDevice(int device)
{
    const cudaError_t error = check_index(double_enter(false), device);
    if (!error) {
        thread_device = device;
        the_double.has_context[device] = true;
        map_stats_locked(device);
    }
    return double_leave(error);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    const cudaError_t error = check_index(double_enter(false), device);
    if (!error) {
        *properties = (struct cudaDeviceProp){.name = "Test Double",
                                              .totalGlobalMem = the_double.settings.device_bytes};
        for (int i = 0; i < 16; i++)
            properties->uuid.bytes[i] = (char)(device * 16 + i);
    }
    return double_leave(error);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    const cudaError_t error = check_index(double_enter(false), device);
    const int capability = (int)the_double.settings.capability;
    if (!error) {
        switch (attribute) {
        case cudaDevAttrMultiProcessorCount:
            *value =
                the_double.timeline.machine ? (int)the_double.timeline.machine->n_processors : 4;
            break;
        case cudaDevAttrComputeCapabilityMajor: *value = capability / 10; break;
        case cudaDevAttrComputeCapabilityMinor: *value = capability % 10; break;
        }
    }
    return double_leave(error);
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int n_bytes, int device)
{
    const cudaError_t error = check_index(double_enter(false), device);
    if (!error)
        snprintf(text, (size_t)n_bytes, "0000:%02X:00.0", 0x3B + device);
    return double_leave(error);
}
