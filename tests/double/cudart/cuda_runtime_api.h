/* The part of the CUDA runtime that kernels/cuda/runtime.c calls, with the names and error values
 * of NVIDIA's header. Implemented by the test double beside it; needs no toolkit. */
#pragma once

#include <stddef.h>

#define CUDART_VERSION 13000

#define CUDA_ERRORS(X)                                                                             \
    X(cudaSuccess, 0)                                                                              \
    X(cudaErrorInvalidValue, 1)                                                                    \
    X(cudaErrorMemoryAllocation, 2)                                                                \
    X(cudaErrorInitializationError, 3)                                                             \
    X(cudaErrorCudartUnloading, 4)                                                                 \
    X(cudaErrorStubLibrary, 34)                                                                    \
    X(cudaErrorInsufficientDriver, 35)                                                             \
    X(cudaErrorCallRequiresNewerDriver, 36)                                                        \
    X(cudaErrorDevicesUnavailable, 46)                                                             \
    X(cudaErrorInvalidDeviceFunction, 98)                                                          \
    X(cudaErrorNoDevice, 100)                                                                      \
    X(cudaErrorInvalidDevice, 101)                                                                 \
    X(cudaErrorDeviceNotLicensed, 102)                                                             \
    X(cudaErrorSoftwareValidityNotEstablished, 103)                                                \
    X(cudaErrorStartupFailure, 127)                                                                \
    X(cudaErrorDeviceUninitialized, 201)                                                           \
    X(cudaErrorNoKernelImageForDevice, 209)                                                        \
    X(cudaErrorECCUncorrectable, 214)                                                              \
    X(cudaErrorInvalidPtx, 218)                                                                    \
    X(cudaErrorNvlinkUncorrectable, 220)                                                           \
    X(cudaErrorJitCompilerNotFound, 221)                                                           \
    X(cudaErrorUnsupportedPtxVersion, 222)                                                         \
    X(cudaErrorJitCompilationDisabled, 223)                                                        \
    X(cudaErrorSharedObjectSymbolNotFound, 302)                                                    \
    X(cudaErrorSharedObjectInitFailed, 303)                                                        \
    X(cudaErrorOperatingSystem, 304)                                                               \
    X(cudaErrorInvalidResourceHandle, 400)                                                         \
    X(cudaErrorIllegalState, 401)                                                                  \
    X(cudaErrorNotReady, 600)                                                                      \
    X(cudaErrorIllegalAddress, 700)                                                                \
    X(cudaErrorLaunchOutOfResources, 701)                                                          \
    X(cudaErrorLaunchTimeout, 702)                                                                 \
    X(cudaErrorContextIsDestroyed, 709)                                                            \
    X(cudaErrorAssert, 710)                                                                        \
    X(cudaErrorHostMemoryAlreadyRegistered, 712)                                                   \
    X(cudaErrorHostMemoryNotRegistered, 713)                                                       \
    X(cudaErrorHardwareStackError, 714)                                                            \
    X(cudaErrorIllegalInstruction, 715)                                                            \
    X(cudaErrorMisalignedAddress, 716)                                                             \
    X(cudaErrorInvalidAddressSpace, 717)                                                           \
    X(cudaErrorInvalidPc, 718)                                                                     \
    X(cudaErrorLaunchFailure, 719)                                                                 \
    X(cudaErrorNotPermitted, 800)                                                                  \
    X(cudaErrorNotSupported, 801)                                                                  \
    X(cudaErrorSystemNotReady, 802)                                                                \
    X(cudaErrorSystemDriverMismatch, 803)                                                          \
    X(cudaErrorCompatNotSupportedOnDevice, 804)                                                    \
    X(cudaErrorMpsConnectionFailed, 805)                                                           \
    X(cudaErrorMpsRpcFailure, 806)                                                                 \
    X(cudaErrorMpsServerNotReady, 807)                                                             \
    X(cudaErrorMpsMaxClientsReached, 808)                                                          \
    X(cudaErrorMpsMaxConnectionsReached, 809)                                                      \
    X(cudaErrorMpsClientTerminated, 810)                                                           \
    X(cudaErrorExternalDevice, 911)                                                                \
    X(cudaErrorUnknown, 999)

#define CUDA_ERROR_MEMBER(name, value) name = value,
typedef enum cudaError { CUDA_ERRORS(CUDA_ERROR_MEMBER) } cudaError_t;
#undef CUDA_ERROR_MEMBER

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct {
    char bytes[16];
} cudaUUID_t;

struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem;
};

enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
};

enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
};

#define cudaHostAllocPortable    0x01u
#define cudaHostRegisterDefault  0x00u
#define cudaHostRegisterReadOnly 0x08u
#define cudaStreamNonBlocking    0x01u
#define cudaEventDefault         0x00u
#define cudaEventBlockingSync    0x01u

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);

cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetPCIBusId(char *text, int n_bytes, int device);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);

cudaError_t cudaMalloc(void **memory, size_t n_bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostAlloc(void **memory, size_t n_bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaHostRegister(void *memory, size_t n_bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *memory);

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n_bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream);
