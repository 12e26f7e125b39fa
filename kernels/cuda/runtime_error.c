/* What the runtime's errors mean for a process that uses one device.
 *
 * Two lists, made from the descriptions in NVIDIA's headers: errors after which the context is of
 * no use ("the process must be terminated and relaunched", or no statement that it is still good),
 * and errors that say that there is no device to be had. An error that is in neither list (out of
 * memory, an argument that was refused, memory registered twice) leaves everything as it was.
 *
 * Some are in both: a device that falls off its bus while it works is reported as "no device" or
 * "devices unavailable" too. Who is starting asks cuda_error_is_absent() first; who is working asks
 * cuda_error_is_sticky() first.
 *
 * Called by the CUDA worker and by the programs that test kernels.
 */
#include "kernels/cuda/runtime.h"

#include <cuda_runtime_api.h>

/* Members that the headers of the first releases of CUDA 12 lack. */
enum { ERROR_CONTAINED = 226, ERROR_TENSOR_MEMORY_LEAK = 721 };

const char *cuda_error_name(int error)
{
    return cudaGetErrorName((cudaError_t)error);
}

const char *cuda_error_text(int error)
{
    return cudaGetErrorString((cudaError_t)error);
}

bool cuda_error_is_sticky(int error)
{
    switch (error) {
    /* A kernel went wrong: the header says that the process is left in an inconsistent state. */
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case ERROR_TENSOR_MEMORY_LEAK:
    /* The hardware went wrong: what is in memory may be anything. */
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case ERROR_CONTAINED:
    case cudaErrorExternalDevice:
    /* The context is gone: driver reload, reset, suspend, the end of a shared server. */
    case cudaErrorContextIsDestroyed:
    case cudaErrorDeviceUninitialized:
    case cudaErrorCudartUnloading:
    case cudaErrorIllegalState:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsClientTerminated:
    /* The device is gone. */
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorDevicesUnavailable:
    /* Nobody knows: nothing may be believed. A lost device is often reported so. */
    case cudaErrorUnknown: return true;
    default: return false;
    }
}

bool cuda_error_is_absent(int error)
{
    switch (error) {
    /* No driver, one that is too old for this runtime, or one that does not come up. */
    case cudaErrorStubLibrary:
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorInitializationError:
    case cudaErrorStartupFailure:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    /* The driver's shared objects or device files are not to be opened. */
    case cudaErrorSharedObjectSymbolNotFound:
    case cudaErrorSharedObjectInitFailed:
    case cudaErrorOperatingSystem:
    case cudaErrorNotPermitted:
    /* No such device, or it is not for us: exclusive to another process, not licensed, not there.
     */
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceNotLicensed:
    case cudaErrorSoftwareValidityNotEstablished:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsMaxClientsReached:
    case cudaErrorMpsMaxConnectionsReached:
    /* The device is older than all of our machine code, or the driver cannot translate our PTX. */
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidPtx:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorJitCompilationDisabled: return true;
    default: return false;
    }
}
