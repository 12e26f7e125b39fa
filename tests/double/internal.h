/* What the files of the test double share. One lock guards all of it; the streams' threads run
 * copies and kernels without it. Functions that are named *_locked, and all of order.c, want it
 * held. */
#pragma once

#include "tests/double/double.h"
#include "tests/double/timeline.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>

#define N_STREAMS 32u /* at a time */
#define EVERY     UINT64_MAX

/* settings.c */
struct settings {
    /* what there is */
    uint64_t devices, device_bytes, used_bytes, context_bytes, register_bytes, capability;
    bool no_driver, old_driver, strange_register, no_blas, fail_blas, fail_gemm;
    /* what goes wrong: the N-th of its kind, EVERY, 0: never */
    uint64_t fail_malloc, fail_host_alloc, fail_register, fail_launch;
    uint64_t sticky_launch, sticky_copy, hang_launch, hang_copy, lost_after;
    uint64_t sticky_data, hang_data, lost_data; /* a launch that reads it */
    /* when */
    uint64_t slow_link, seed, delay_us, allocations, pace;
    char once[256], armed[256], back[256], absent_until[256], stats[256], report[256];
    char machine[256], timeline[256];
};

void settings_read(struct settings *s);
bool file_exists(const char *path);
/* Whether this process is the one that made it. */
bool file_make(const char *path);

/* How far somebody has seen each stream: operations up to this number have ended. */
struct clock {
    uint64_t at[N_STREAMS];
};

void clock_join(struct clock *clock, const struct clock *other);

/* An event's recording: waiting for an event means for the recording that it has then. */
struct record {
    unsigned n_users;
    bool is_done;
    uint64_t time_ns;
    struct clock clock;
};

enum operation_kind { OPERATION_COPY, OPERATION_KERNEL, OPERATION_RECORD, OPERATION_WAIT };

struct operation {
    struct operation *next;
    enum operation_kind kind;
    bool is_hanging, is_faulty;
    uint64_t issued_ns; /* by the modelled clock */
    struct record *record;
    /* A copy: real addresses. */
    char *to;
    const char *from;
    size_t n_bytes, row_bytes; /* of all rows, of one */
    size_t to_pitch, from_pitch;
    enum cudaMemcpyKind direction;
    bool is_source_guarded; /* nobody may write to the source before the copy ran */
    uint64_t source_sum;
    /* A kernel. */
    cuda_host_kernel *kernel;
    char *memory;
    cuda_host_work *work;
    uint64_t read_bytes, write_offset, write_bytes, outside_bytes;
    _Alignas(16) char arguments[CUDA_HOST_MAX_ARGUMENTS];
};

struct CUstream_st {
    pthread_t thread;
    pthread_cond_t has_work;
    struct operation *head, **tail;
    struct clock clock;
    unsigned index;
    int device, priority; /* the least goes first */
    uint64_t random, time_ns;
    bool is_closing, is_hanging;
};

struct CUevent_st {
    struct record *record;
    int device;
};

enum memory_kind { MEMORY_DEVICE, MEMORY_PINNED, MEMORY_REGISTERED, MEMORY_READ_ONLY };

struct memory {
    struct memory *next;
    char *address; /* device: nothing may be read there; the memory is at `real` */
    char *real;
    size_t n_bytes;
    enum memory_kind kind;
};

/* timeline.c */
struct timeline {
    const struct timeline_machine *machine; /* NULL: none is modelled */
    uint64_t host_ns, free_ns[TIMELINE_ENGINES];
    uint64_t patient_ns; /* when a kernel of the most patient streams may begin */
    bool is_paced;
    uint64_t real_ns, begin_ns; /* since when */
    FILE *file;
};

struct state {
    pthread_mutex_t lock;
    pthread_cond_t recorded; /* a record is done, or `sticky` is set */
    struct settings settings;
    struct double_stats *stats, own_stats;
    cudaError_t sticky; /* the context is lost */
    bool has_context[16];
    struct CUstream_st *streams[N_STREAMS];
    uint64_t ticks[N_STREAMS]; /* operations so far, also of earlier streams in the same place */
    struct clock host;         /* what any thread of the program has seen to end */
    struct memory *memory;
    struct timeline timeline;
    uint64_t n_running, n_queued;
    /* Of each kind so far, for faults. */
    uint64_t n_mallocs, n_host_allocs, n_registrations, n_launches, n_copies, n_operations,
        n_refused;
};

extern struct state the_double;

/* double.c. Locks; an error that every call gives. is_context: the call uses the thread's device.
 */
cudaError_t double_enter(bool is_context);
/* Unlocks; remembers the thread's last error. */
cudaError_t double_leave(cudaError_t error);
int double_device(void); /* the thread's */
/* Says what the program did wrong, to stderr and to report=, and aborts. */
_Noreturn void double_abort(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Counts towards allocations=. */
void double_allocates_locked(const char *what);
/* Faults may happen. */
bool is_armed(void);
bool is_nth(uint64_t setting, uint64_t *count);
uint64_t now_ns(void);

/* memory.c. The memory in which all of the range lies, or NULL. */
struct memory *memory_find_locked(const void *address, size_t n_bytes);

/* stream.c. Zeroed; takes the operation over. */
struct operation *operation_new(enum operation_kind kind);
void stream_put_locked(struct CUstream_st *stream, struct operation *o);
void stream_check_locked(const struct CUstream_st *stream, const char *what);
/* The stream's next operation's clock: what it may rely on, itself included. */
const struct clock *stream_tick_locked(struct CUstream_st *stream);
/* The context is lost from here on. */
void stream_set_sticky_locked(cudaError_t error);
/* The device is gone, for later processes too. */
void stream_lose_locked(void);
struct record *record_unref(struct record *r);

/* timeline.c: nothing happens where no machine is modelled, but in those with an operation. */
/* The program calls. */
void timeline_call_locked(void);
/* It has seen that what ended then has ended. */
void timeline_see_locked(uint64_t time_ns);
/* In the stream's thread; the lock is not held all the time. */
void timeline_work_locked(struct CUstream_st *stream, const struct operation *o);
void timeline_record_locked(struct CUstream_st *stream, struct operation *o);
void timeline_wait_locked(struct CUstream_st *stream, const struct operation *o);

/* run.c: in the stream's thread, without the lock. */
bool operation_reads_word(const struct operation *o, uint64_t word);
void operation_run(struct CUstream_st *stream, const struct operation *o);
uint64_t sum_memory(const char *memory, size_t n_bytes);

/* order.c. The operation `what` with this clock, of stream `index`, reads or writes the range. */
void order_touch(const struct clock *clock, unsigned index, const char *what, const char *address,
                 size_t n_bytes, bool is_write);
/* All that touched it has been seen to end by the program. */
bool order_is_quiet(const char *address, size_t n_bytes);
void order_forget(const char *address, size_t n_bytes);
