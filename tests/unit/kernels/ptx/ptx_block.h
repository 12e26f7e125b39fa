/* Blocks of kernels that ptx_to_c.py made of PTX, run on this processor with every access checked.
 *
 * A block's threads are fibres: one runs until bar.sync or its end, then the next. Between two
 * barriers they therefore run one after the other, so that a race is never seen in the result; it
 * is found by what is noted for each byte. The first fault ends the launch.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum ptx_fault {
    PTX_FINE,
    PTX_MISALIGNED,       /* an address that is no multiple of the bytes moved at once */
    PTX_OUT_OF_BOUNDS,    /* beyond every buffer, or beyond the shared memory */
    PTX_READ_ONLY,        /* writes to a buffer that is only read */
    PTX_UNWRITTEN,        /* reads what nothing wrote, or what is still on its way */
    PTX_RACE,             /* two threads, one byte of shared memory, no barrier between them */
    PTX_UNEQUAL_BARRIERS, /* some wait, others have ended or wait at another barrier */
    PTX_NOT_AWAITED,      /* a thread ends, or has too many copies on their way */
};

/* Global memory; is_written: a byte for each byte, which stores set; NULL: it is only read. */
struct ptx_buffer {
    void *start;
    uint64_t n_bytes;
    bool *is_written;
};

/* As kernels are declared: void kernel(void *const *arguments), uint32_t kernel_shared_bytes. */
struct ptx_launch {
    void (*kernel)(void *const *arguments);
    uint32_t shared_bytes;
    void *const *arguments; /* addresses of the values */
    uint32_t n_blocks[2];   /* in x and y */
    uint32_t n_threads;
    const struct ptx_buffer *buffers;
    unsigned n_buffers;
};

/* Where the fault was; line: of the C that was made. */
struct ptx_report {
    enum ptx_fault fault;
    uint32_t block[2], thread;
    uint64_t address;
    int line;
};

/* 0, also where there is a fault, or -ENOMEM. Not for two threads at a time. */
int ptx_run(const struct ptx_launch *launch, struct ptx_report *ret_report)
    __attribute__((warn_unused_result));

/* For what ptx_to_c.py makes: where the bytes are, if they may be accessed; no return if not. */
uintptr_t ptx_ld_global(uintptr_t address, uint32_t n_bytes, int line);
uintptr_t ptx_st_global(uintptr_t address, uint32_t n_bytes, int line);
uintptr_t ptx_ld_shared(uintptr_t address, uint32_t n_bytes, int line);
uintptr_t ptx_st_shared(uintptr_t address, uint32_t n_bytes, int line);
/* What is in shared memory, a thread's own, or global: by its address. */
uintptr_t ptx_ld_generic(uintptr_t address, uint32_t n_bytes, int line);
uintptr_t ptx_st_generic(uintptr_t address, uint32_t n_bytes, int line);
uintptr_t ptx_atomic_shared(uintptr_t address, uint32_t n_bytes, int line);
/* The bytes come when they are waited for; until then there is nothing. */
void ptx_cp_async(uintptr_t to_shared, uintptr_t from_global, uint32_t n_bytes, int line);
void ptx_commit_group(void);
void ptx_wait_group(uint32_t n_newer, int line);
void ptx_barrier(int line);
uint64_t cvta_shared_u64(uint64_t address);
uint64_t cvta_to_shared_u64(uint64_t address);
uint32_t ptx_tid_x(void);
uint32_t ptx_ntid_x(void);
uint32_t ptx_ctaid_x(void);
uint32_t ptx_ctaid_y(void);

/* A thread's own memory, parameters and global memory are where they are. */
#define CVTA(name)                                                                                 \
    static inline __attribute__((unused)) uint64_t name(uint64_t address)                          \
    {                                                                                              \
        return address;                                                                            \
    }
CVTA(cvta_to_global_u64)
CVTA(cvta_to_local_u64)
CVTA(cvta_local_u64)
CVTA(cvta_param_u64)
#undef CVTA
