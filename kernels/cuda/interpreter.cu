/* The kernels of the interpreter, those of tasks behind it, and their launches.
 *
 * The interpreter's family has two members: a light one for programs of arithmetic, comparisons,
 * selections and casts, which needs few registers, so that many threads run at a time and memory is
 * busy; and one that knows the whole catalogue. Both read what kernels/cuda/code.h says, by blocks
 * of up to 256 threads, in strips of 4 elements a thread; every operand passes device memory once.
 * Sums are compensated and of fixed order (device/reduce.h). Tasks are reductions along axes,
 * counts and scans: they read what is there already once, scans twice. Windows are made before, by
 * kernels of their own. The code is device/interpret.inc, axes.inc, count.inc, scan.inc and
 * window.inc, which the host compiles too.
 *
 * Compile with -fmad=false: a product and a sum are two roundings, as on the CPU.
 */
#include "kernels/cuda/device/counters.h"
#include "kernels/cuda/device/integer.h"
#include "kernels/cuda/device/lookup.h"
#include "kernels/cuda/device/math.h"
#include "kernels/cuda/device/move.h"
#include "kernels/cuda/device/random.h"
#include "kernels/cuda/device/reduce.h"
#include "kernels/cuda/device/task.h"

#include <cuda_runtime.h>

extern "C" {
#include "kernels/cuda/interpreter.h"
int cuda_interpreter_warm_up(void *scratch, cuda_stream stream);
int cuda_interpreter_local_bytes(uint64_t *ret_n_bytes);
const char *cuda_interpreter_architectures(void);
}

#define INTERPRET_NAME(x) light_##x
#include "kernels/cuda/device/interpret.inc"
#undef INTERPRET_NAME

#define INTERPRET_NAME(x) full_##x
#define INTERPRET_FULL
#include "kernels/cuda/device/interpret.inc"
#undef INTERPRET_FULL
#undef INTERPRET_NAME

#include "kernels/cuda/device/axes.inc"
#include "kernels/cuda/device/count.inc"
#include "kernels/cuda/device/scan.inc"
#include "kernels/cuda/device/window.inc"

/* Blocks of a multiprocessor that registers must leave room for: before sm_80, all its threads. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define LIGHT_BLOCKS 4
#else
#define LIGHT_BLOCKS 5
#endif
#define FULL_BLOCKS 3
#define AXES_BLOCKS 3
#define TASK_BLOCKS 4

/* Where n_grains is 0, nothing is read or written. */
#define KERNEL(name, n_resident)                                                                   \
    extern "C" __global__ void __launch_bounds__(CODE_MAX_THREADS, n_resident)                     \
        cuda_interpret_##name(const __grid_constant__ struct code_header header, char *slot,       \
                              u32 n_grains)                                                        \
    {                                                                                              \
        extern __shared__ uint4 cuda_shared[];                                                     \
        if (blockIdx.y < n_grains)                                                                 \
            name##_run_block(&header, slot, (char *)cuda_shared, blockIdx.y, blockIdx.x);          \
    }
KERNEL(light, LIGHT_BLOCKS)
KERNEL(full, FULL_BLOCKS)

extern "C" __global__ void __launch_bounds__(CODE_TASK_THREADS, AXES_BLOCKS)
    cuda_reduce_axes(const __grid_constant__ struct code_header header, char *slot, u32 n_grains)
{
    __shared__ struct code_state states[AXES_STATES];
    if (blockIdx.y < n_grains)
        run_axes_block(&header, slot, states, blockIdx.y, blockIdx.x);
}

extern "C" __global__ void __launch_bounds__(CODE_TASK_THREADS, TASK_BLOCKS)
    cuda_count(const __grid_constant__ struct code_header header, char *slot, u32 n_grains)
{
    __shared__ struct count_shared shared;
    if (blockIdx.y < n_grains)
        run_count_block(&header, slot, &shared, blockIdx.y, blockIdx.x);
}

extern "C" __global__ void __launch_bounds__(CODE_TASK_THREADS, TASK_BLOCKS)
    cuda_scan(const __grid_constant__ struct code_header header, char *slot, u32 n_grains)
{
    __shared__ u64 states[CODE_TASK_THREADS];
    if (blockIdx.y < n_grains)
        run_scan_block(&header, slot, states, blockIdx.y, blockIdx.x);
}

extern "C" __global__ void __launch_bounds__(CODE_TASK_THREADS)
    cuda_windows(const __grid_constant__ struct code_header header, char *slot, u32 n_grains)
{
    if (blockIdx.y < n_grains)
        run_window_block(&header, slot, blockIdx.y, blockIdx.x);
}

extern "C" __global__ void __launch_bounds__(CODE_TASK_THREADS)
    cuda_ranks(const __grid_constant__ struct code_header header, char *slot, u32 n_grains)
{
    __shared__ u64 shared[CODE_RANK_SHARED_ITEMS];
    if (blockIdx.y < n_grains)
        run_rank_block(&header, slot, shared, blockIdx.y, blockIdx.x);
}

static int launch(const struct code_header *header, dim3 grid, char *slot, u32 n_grains,
                  cuda_stream stream)
{
    dim3 block(header->n_threads);
    if (header->kernel == CODE_KERNEL_LIGHT)
        cuda_interpret_light<<<grid, block, header->shared_bytes, (cudaStream_t)stream>>>(
            *header, slot, n_grains);
    else
        cuda_interpret_full<<<grid, block, header->shared_bytes, (cudaStream_t)stream>>>(
            *header, slot, n_grains);
    return (int)cudaGetLastError();
}

typedef void task_kernel(const struct code_header header, char *slot, u32 n_grains);

static int launch_task(task_kernel *kernel, const struct code_header *header, dim3 grid, char *slot,
                       u32 n_grains, cuda_stream stream)
{
    kernel<<<grid, CODE_TASK_THREADS, 0, (cudaStream_t)stream>>>(*header, slot, n_grains);
    return (int)cudaGetLastError();
}

extern "C" int cuda_interpreter_launch(const struct interpreter_launch *l, void *device_slot,
                                       cuda_stream stream)
{
    char *slot = (char *)device_slot;
    const struct {
        task_kernel *kernel; /* NULL: the interpreter */
        u32 n_blocks;
    } kernels[] = {{cuda_windows, l->n_window_blocks},
                   {cuda_ranks, l->n_rank_blocks},
                   {NULL, l->n_blocks},
                   {cuda_reduce_axes, l->n_axes_blocks},
                   {cuda_count, l->n_count_blocks},
                   {cuda_scan, l->n_scan_blocks}};
    int r = 0;
    for (u32 i = 0; r == 0 && i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        dim3 grid(kernels[i].n_blocks, l->n_grains);
        if (kernels[i].n_blocks == 0)
            continue;
        r = kernels[i].kernel
                ? launch_task(kernels[i].kernel, &l->header, grid, slot, l->n_grains, stream)
                : launch(&l->header, grid, slot, l->n_grains, stream);
    }
    return r;
}

/* As much of a multiprocessor's memory for values as it can give. */
static int prepare(const void *kernel)
{
    return (int)cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                     cudaSharedmemCarveoutMaxShared);
}

extern "C" int cuda_interpreter_warm_up(void *scratch, cuda_stream stream)
{
    struct code_header header = {};
    header.n_threads = CODE_MAX_THREADS;
    header.shared_bytes = CODE_MAX_SHARED_BYTES;
    int r = prepare((const void *)cuda_interpret_light);
    if (r == 0)
        r = prepare((const void *)cuda_interpret_full);
    for (u32 kernel = 0; r == 0 && kernel < CODE_KERNEL_COUNT; kernel++) {
        header.kernel = (uint8_t)kernel;
        r = launch(&header, dim3(1), (char *)scratch, 0, stream);
    }
    task_kernel *const tasks[] = {cuda_windows, cuda_ranks, cuda_reduce_axes, cuda_count,
                                  cuda_scan};
    for (u32 i = 0; r == 0 && i < sizeof(tasks) / sizeof(tasks[0]); i++)
        r = launch_task(tasks[i], &header, dim3(1), (char *)scratch, 0, stream);
    return r;
}

/* A thread's local memory, for as many threads as the device runs at a time. */
extern "C" int cuda_interpreter_local_bytes(uint64_t *ret_n_bytes)
{
    const void *const kernels[] = {(const void *)cuda_interpret_light,
                                   (const void *)cuda_interpret_full,
                                   (const void *)cuda_reduce_axes,
                                   (const void *)cuda_count,
                                   (const void *)cuda_scan,
                                   (const void *)cuda_windows,
                                   (const void *)cuda_ranks};
    uint64_t most = 0;
    for (u32 i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        cudaFuncAttributes attributes;
        cudaError_t error = cudaFuncGetAttributes(&attributes, kernels[i]);
        if (error != cudaSuccess)
            return (int)error;
        most = attributes.localSizeBytes > most ? attributes.localSizeBytes : most;
    }
    int device, n_multiprocessors, n_threads;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&n_multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&n_threads, cudaDevAttrMaxThreadsPerMultiProcessor, device);
    if (error != cudaSuccess)
        return (int)error;
    *ret_n_bytes = most * (uint64_t)n_multiprocessors * (uint64_t)n_threads;
    return 0;
}

#if !defined(CUDA_ARCHITECTURES)
#define CUDA_ARCHITECTURES "not said"
#endif

extern "C" const char *cuda_interpreter_architectures(void)
{
    return CUDA_ARCHITECTURES;
}
