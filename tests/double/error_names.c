/* Names and texts of the errors that the test double knows. Called by kernels/cuda/runtime_error.c.
 */
#include <cuda_runtime_api.h>

#define NAME(name, value)                                                                          \
    case value: return #name;

const char *cudaGetErrorName(cudaError_t error)
{
    switch ((int)error) {
        CUDA_ERRORS(NAME)
    default: return "unrecognized error code";
    }
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorUnknown: return "unknown error";
    default: return cudaGetErrorName(error);
    }
}
