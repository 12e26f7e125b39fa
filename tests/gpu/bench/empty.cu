/* A kernel that does nothing, for the floor of a launch. */
#include <cuda_runtime.h>

static __global__ void empty(void) {}

extern "C" int bench_empty_launch(cudaStream_t stream)
{
    empty<<<1, 32, 0, stream>>>();
    return cudaGetLastError();
}
