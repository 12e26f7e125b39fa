/* The CUDA runtime behind runtime.h: streams, events, copies, memory, the device.
 *
 * Compiled against NVIDIA's cuda_runtime_api.h for the worker and against the test double's for the
 * tests, so it calls nothing that the double lacks. Written for CUDA 12.0 and newer: what a device
 * can do is asked by attributes, and of struct cudaDeviceProp only members that both 12 and 13 have
 * are read.
 *
 * Invariants:
 * - Every answer of the runtime goes through checked(), which also takes back the thread's "last
 *   error": else a launch that looks at it would be blamed for an earlier, handled refusal.
 * - The current device belongs to a thread, not to the process, and a thread that never chose one
 *   would make a second context on device 0. So every call first binds its thread to the device
 *   that was opened.
 * - Memory is on a list from before the runtime gives it until after the runtime has it back: the
 *   counts never say less than what is held. The list is guarded by a spin lock, held for a walk of
 *   a few entries; allocating is rare by design.
 *
 * Called by the CUDA worker (any of its threads), and by programs that test or time kernels.
 */
#include "kernels/cuda/runtime.h"

#include <cuda_runtime_api.h>
#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { KIND_DEVICE, KIND_HOST, KIND_REGISTERED, N_KINDS };

struct held {
    struct held *next;
    void *address;
    size_t n_bytes;
    enum kind kind;
};

static atomic_flag held_lock = ATOMIC_FLAG_INIT;
static struct held *held_list;
static _Atomic uint64_t n_calls[N_KINDS], held_bytes[N_KINDS];

static _Atomic int opened_index = -1;
static _Thread_local int bound_index = -1;

static int checked(cudaError_t error)
{
    if (error != cudaSuccess)
        (void)cudaGetLastError();
    return (int)error;
}

static int bind_thread(void)
{
    const int index = atomic_load_explicit(&opened_index, memory_order_acquire);
    if (index < 0 || bound_index == index)
        return 0;
    const int r = checked(cudaSetDevice(index));
    if (r == 0)
        bound_index = index;
    return r;
}

int cuda_thread_bind(void)
{
    return bind_thread();
}

static void lock_list(void)
{
    while (atomic_flag_test_and_set_explicit(&held_lock, memory_order_acquire))
        ;
}

static void unlock_list(void)
{
    atomic_flag_clear_explicit(&held_lock, memory_order_release);
}

/* The entry of an address that is yet to be had; NULL without memory. */
static struct held *held_new(enum kind kind, size_t n_bytes)
{
    struct held *h = malloc(sizeof *h);
    if (!h)
        return NULL;
    *h = (struct held){.kind = kind, .n_bytes = n_bytes};
    atomic_fetch_add(&n_calls[kind], 1);
    return h;
}

static void held_add(struct held *h, void *address)
{
    h->address = address;
    atomic_fetch_add(&held_bytes[h->kind], h->n_bytes);
    lock_list();
    h->next = held_list;
    held_list = h;
    unlock_list();
}

static void held_remove(enum kind kind, const void *address)
{
    lock_list();
    struct held **at = &held_list;
    while (*at && ((*at)->kind != kind || (*at)->address != address))
        at = &(*at)->next;
    struct held *h = *at;
    if (h)
        *at = h->next;
    unlock_list();
    if (!h)
        return;
    atomic_fetch_sub(&held_bytes[kind], h->n_bytes);
    free(h);
}

struct cuda_allocations cuda_allocations(void)
{
    return (struct cuda_allocations){
        .n_device = atomic_load(&n_calls[KIND_DEVICE]),
        .n_host = atomic_load(&n_calls[KIND_HOST]),
        .device_bytes = atomic_load(&held_bytes[KIND_DEVICE]),
        .host_bytes = atomic_load(&held_bytes[KIND_HOST]),
        .n_registered = atomic_load(&n_calls[KIND_REGISTERED]),
        .registered_bytes = atomic_load(&held_bytes[KIND_REGISTERED]),
    };
}

void cuda_versions(int *ret_driver, int *ret_runtime)
{
    if (checked(cudaDriverGetVersion(ret_driver)))
        *ret_driver = 0;
    if (checked(cudaRuntimeGetVersion(ret_runtime)))
        *ret_runtime = CUDART_VERSION;
}

int cuda_device_count(int *ret_n)
{
    int n = 0;
    const int r = checked(cudaGetDeviceCount(&n));
    if (r == 0)
        *ret_n = n;
    return r;
}

static int attribute(int index, enum cudaDeviceAttr what, int *ret_value)
{
    return checked(cudaDeviceGetAttribute(ret_value, what, index));
}

static void write_uuid(const cudaUUID_t *uuid, char text[static 48])
{
    int used = snprintf(text, 48, "GPU-");
    for (unsigned i = 0; i < sizeof uuid->bytes; i++)
        used += snprintf(text + used, 48 - (size_t)used, "%s%02x",
                         i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                         (unsigned char)uuid->bytes[i]);
}

static int describe(int index, struct cuda_device *d)
{
    struct cudaDeviceProp properties;
    int r = checked(cudaGetDeviceProperties(&properties, index));
    if (r)
        return r;
    snprintf(d->name, sizeof d->name, "%.*s", (int)sizeof d->name - 1, properties.name);
    write_uuid(&properties.uuid, d->uuid);
    d->total_bytes = properties.totalGlobalMem;
    r = checked(cudaDeviceGetPCIBusId(d->pci, sizeof d->pci, index));
    if (r)
        return r;
    for (char *c = d->pci; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    if ((r = attribute(index, cudaDevAttrComputeCapabilityMajor, &d->major)) ||
        (r = attribute(index, cudaDevAttrComputeCapabilityMinor, &d->minor)))
        return r;
    cuda_versions(&d->driver_version, &d->runtime_version);
    return 0;
}

int cuda_device_open(int index, struct cuda_device *ret_device)
{
    struct cuda_device device = {.index = index};
    int r = checked(cudaSetDevice(index));
    if (r)
        return r;
    /* The context is made here and nowhere later, also by runtimes that would wait with it. */
    if ((r = checked(cudaFree(NULL))) || (r = describe(index, &device)))
        return r;
    bound_index = index;
    atomic_store_explicit(&opened_index, index, memory_order_release);
    *ret_device = device;
    return 0;
}

int cuda_memory_info(uint64_t *ret_free_bytes, uint64_t *ret_total_bytes)
{
    size_t free_bytes = 0, total_bytes = 0;
    int r = bind_thread();
    if (r || (r = checked(cudaMemGetInfo(&free_bytes, &total_bytes))))
        return r;
    *ret_free_bytes = free_bytes;
    *ret_total_bytes = total_bytes;
    return 0;
}

static int allocate(enum kind kind, size_t n_bytes, void **ret_memory)
{
    int r = bind_thread();
    if (r)
        return r;
    struct held *h = held_new(kind, n_bytes);
    if (!h)
        return cudaErrorMemoryAllocation;
    void *memory = NULL;
    r = checked(kind == KIND_DEVICE ? cudaMalloc(&memory, n_bytes)
                                    : cudaHostAlloc(&memory, n_bytes, cudaHostAllocPortable));
    if (r) {
        free(h);
        return r;
    }
    held_add(h, memory);
    *ret_memory = memory;
    return 0;
}

int cuda_malloc(size_t n_bytes, void **ret_device)
{
    return allocate(KIND_DEVICE, n_bytes, ret_device);
}

int cuda_host_alloc(size_t n_bytes, void **ret_memory)
{
    return allocate(KIND_HOST, n_bytes, ret_memory);
}

/* After a sticky error the runtime refuses to free; the process's end frees then. */
void cuda_free(void *device)
{
    if (!device || bind_thread() || checked(cudaFree(device)))
        return;
    held_remove(KIND_DEVICE, device);
}

void cuda_host_free(void *memory)
{
    if (!memory || bind_thread() || checked(cudaFreeHost(memory)))
        return;
    held_remove(KIND_HOST, memory);
}

int cuda_host_register(void *memory, size_t n_bytes, bool is_read_only)
{
    int r = bind_thread();
    if (r)
        return r;
    struct held *h = held_new(KIND_REGISTERED, n_bytes);
    if (!h)
        return cudaErrorMemoryAllocation;
    r = checked(cudaHostRegister(
        memory, n_bytes, is_read_only ? cudaHostRegisterReadOnly : cudaHostRegisterDefault));
    if (r) {
        free(h);
        return r;
    }
    held_add(h, memory);
    return 0;
}

int cuda_host_unregister(void *memory)
{
    int r = bind_thread();
    if (r == 0)
        r = checked(cudaHostUnregister(memory));
    if (r == 0)
        held_remove(KIND_REGISTERED, memory);
    return r;
}

int cuda_stream_new(enum cuda_urgency urgency, cuda_stream *ret_stream)
{
    int least = 0, greatest = 0;
    cudaStream_t stream = NULL;
    int r = bind_thread();
    if (r || (r = checked(cudaDeviceGetStreamPriorityRange(&least, &greatest))) ||
        (r = checked(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                                  least + (greatest - least) * (int)urgency /
                                                              (int)CUDA_URGENT))))
        return r;
    *ret_stream = stream;
    return 0;
}

void cuda_stream_free(cuda_stream stream)
{
    if (stream && bind_thread() == 0)
        (void)checked(cudaStreamDestroy(stream));
}

int cuda_event_new(bool is_blocking, cuda_event *ret_event)
{
    cudaEvent_t event = NULL;
    int r = bind_thread();
    if (r || (r = checked(cudaEventCreateWithFlags(&event, is_blocking ? cudaEventBlockingSync
                                                                       : cudaEventDefault))))
        return r;
    *ret_event = event;
    return 0;
}

void cuda_event_free(cuda_event event)
{
    if (event && bind_thread() == 0)
        (void)checked(cudaEventDestroy(event));
}

int cuda_event_record(cuda_event event, cuda_stream stream)
{
    const int r = bind_thread();
    return r ? r : checked(cudaEventRecord(event, stream));
}

int cuda_stream_wait(cuda_stream stream, cuda_event event)
{
    const int r = bind_thread();
    return r ? r : checked(cudaStreamWaitEvent(stream, event, 0));
}

int cuda_event_query(cuda_event event, bool *ret_is_done)
{
    int r = bind_thread();
    if (r)
        return r;
    r = checked(cudaEventQuery(event));
    if (r && r != cudaErrorNotReady)
        return r;
    *ret_is_done = r == 0;
    return 0;
}

int cuda_event_wait(cuda_event event)
{
    const int r = bind_thread();
    return r ? r : checked(cudaEventSynchronize(event));
}

int cuda_event_elapsed_ns(cuda_event begin, cuda_event end, uint64_t *ret_ns)
{
    float ms = 0;
    int r = bind_thread();
    if (r || (r = checked(cudaEventElapsedTime(&ms, begin, end))))
        return r;
    *ret_ns = ms > 0 ? (uint64_t)((double)ms * 1e6 + 0.5) : 0;
    return 0;
}

static int copy(void *to, const void *from, size_t n_bytes, enum cudaMemcpyKind kind,
                cudaStream_t stream)
{
    const int r = bind_thread();
    return r ? r : checked(cudaMemcpyAsync(to, from, n_bytes, kind, stream));
}

int cuda_copy_to_device(void *device, const void *memory, size_t n_bytes, cuda_stream stream)
{
    return copy(device, memory, n_bytes, cudaMemcpyHostToDevice, stream);
}

int cuda_copy_from_device(void *memory, const void *device, size_t n_bytes, cuda_stream stream)
{
    return copy(memory, device, n_bytes, cudaMemcpyDeviceToHost, stream);
}

static int copy_rows(void *to, size_t to_stride, const void *from, size_t from_stride,
                     size_t row_bytes, size_t n_rows, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    if (n_rows == 1)
        return copy(to, from, row_bytes, kind, stream);
    const int r = bind_thread();
    return r ? r
             : checked(cudaMemcpy2DAsync(to, to_stride, from, from_stride, row_bytes, n_rows, kind,
                                         stream));
}

int cuda_copy_rows_to_device(void *device, const void *memory, size_t stride_bytes,
                             size_t row_bytes, size_t n_rows, cuda_stream stream)
{
    return copy_rows(device, row_bytes, memory, stride_bytes, row_bytes, n_rows,
                     cudaMemcpyHostToDevice, stream);
}

int cuda_copy_rows_from_device(void *memory, size_t stride_bytes, const void *device,
                               size_t row_bytes, size_t n_rows, cuda_stream stream)
{
    return copy_rows(memory, stride_bytes, device, row_bytes, row_bytes, n_rows,
                     cudaMemcpyDeviceToHost, stream);
}

int cuda_copy_on_device(void *to, const void *from, size_t n_bytes, cuda_stream stream)
{
    return copy(to, from, n_bytes, cudaMemcpyDeviceToDevice, stream);
}
