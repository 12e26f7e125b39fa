/* The only door to the CUDA runtime: every call is checked here, every allocation counted.
 *
 * Functions that can fail return 0 or the runtime's own error number (a cudaError_t, > 0);
 * cuda_error_name() and cuda_error_text() tell what it means. After a sticky error the process's
 * context is of no use any more: nothing that was computed may be believed, the worker ends.
 * Addresses of the device are pointers that the host must not follow.
 */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CUstream_st *cuda_stream;
typedef struct CUevent_st *cuda_event;

struct cuda_device {
    int index;
    char name[128], uuid[48], pci[16]; /* "GPU-…", "0000:3b:00.0" */
    int major, minor;                  /* compute capability */
    uint64_t total_bytes;
    int driver_version, runtime_version; /* 13000: 13.0; driver: the newest that it can run */
};

/* As in struct cuda_device, before a device is open; driver 0: there is none. */
void cuda_versions(int *ret_driver, int *ret_runtime);
int cuda_device_count(int *ret_n) GAD_MUST_CHECK;
/* Makes it the process's device and its context (which takes memory of the device). */
int cuda_device_open(int index, struct cuda_device *ret_device) GAD_MUST_CHECK;
/* The calling thread uses that device: for libraries that look for its context by themselves. */
int cuda_thread_bind(void) GAD_MUST_CHECK;
/* The driver's count for the whole device, all processes. */
int cuda_memory_info(uint64_t *ret_free_bytes, uint64_t *ret_total_bytes) GAD_MUST_CHECK;

/* Everything below that allocates counts. cuda_host_register: pages of the process that exist
 * already (a client's region); read_only where the mapping is. */
int cuda_malloc(size_t n_bytes, void **ret_device) GAD_MUST_CHECK;
int cuda_host_alloc(size_t n_bytes, void **ret_memory) GAD_MUST_CHECK;
void cuda_free(void *device);
void cuda_host_free(void *memory);
int cuda_host_register(void *memory, size_t n_bytes, bool is_read_only) GAD_MUST_CHECK;
/* The address that was registered. */
int cuda_host_unregister(void *memory) GAD_MUST_CHECK;

struct cuda_allocations {
    uint64_t n_device, n_host;               /* calls that allocate, so far */
    uint64_t device_bytes, host_bytes;       /* there now */
    uint64_t n_registered, registered_bytes; /* calls so far; bytes there now. Counted apart */
};
struct cuda_allocations cuda_allocations(void); /* any thread */

/* Kernels of a stream that is more urgent go before those of others, where devices tell so many
 * apart: their blocks get the processors that become free. */
enum cuda_urgency { CUDA_PATIENT, CUDA_USUAL, CUDA_URGENT };
int cuda_stream_new(enum cuda_urgency urgency, cuda_stream *ret_stream) GAD_MUST_CHECK;
void cuda_stream_free(cuda_stream stream);
/* is_blocking: cuda_event_wait() sleeps instead of spinning. All events can be timed. */
int cuda_event_new(bool is_blocking, cuda_event *ret_event) GAD_MUST_CHECK;
void cuda_event_free(cuda_event event);
int cuda_event_record(cuda_event event, cuda_stream stream) GAD_MUST_CHECK;
/* What is put into the stream after this waits for the event. */
int cuda_stream_wait(cuda_stream stream, cuda_event event) GAD_MUST_CHECK;
/* *ret_is_done; 0, or the error of what came before the event. */
int cuda_event_query(cuda_event event, bool *ret_is_done) GAD_MUST_CHECK;
int cuda_event_wait(cuda_event event) GAD_MUST_CHECK;
int cuda_event_elapsed_ns(cuda_event begin, cuda_event end, uint64_t *ret_ns) GAD_MUST_CHECK;

/* `memory` is pinned or registered. They return at once. */
int cuda_copy_to_device(void *device, const void *memory, size_t n_bytes,
                        cuda_stream stream) GAD_MUST_CHECK;
int cuda_copy_from_device(void *memory, const void *device, size_t n_bytes,
                          cuda_stream stream) GAD_MUST_CHECK;
/* The same of rows that are stride_bytes apart in `memory`; dense on the device. One row is a copy
 * as above. */
int cuda_copy_rows_to_device(void *device, const void *memory, size_t stride_bytes,
                             size_t row_bytes, size_t n_rows, cuda_stream stream) GAD_MUST_CHECK;
int cuda_copy_rows_from_device(void *memory, size_t stride_bytes, const void *device,
                               size_t row_bytes, size_t n_rows, cuda_stream stream) GAD_MUST_CHECK;
int cuda_copy_on_device(void *to, const void *from, size_t n_bytes,
                        cuda_stream stream) GAD_MUST_CHECK;

const char *cuda_error_name(int error); /* "cudaErrorIllegalAddress" */
const char *cuda_error_text(int error);
/* The context is lost: illegal address, launch failure, ECC, device lost, ... */
bool cuda_error_is_sticky(int error);
/* There is no usable device or driver here (none, too old, not permitted). */
bool cuda_error_is_absent(int error);
