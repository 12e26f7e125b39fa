/* What is said when the device cannot be had: the fault in words, what was needed, what there is.
 *
 * The runtime says the same for a driver that is missing and for one that is too old, so the
 * versions decide: without a driver its version is 0. A driver that may not be used looks like one
 * without devices, so the device file is asked, too.
 *
 * Absence is asked for before faults: what would be a lost device while jobs run is no device yet.
 *
 * Called by card.c.
 */
#include "daemon/worker/cuda/card_refuse.h"
#include "daemon/worker_exit.h"
#include "kernels/cuda/tile.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CONTROL_FILE "/dev/nvidiactl"

static bool is_named(int cuda_error, const char *name)
{
    return strcmp(cuda_error_name(cuda_error), name) == 0;
}

static void version_text(int version, char *ret_text, size_t n_bytes)
{
    snprintf(ret_text, n_bytes, "CUDA %d.%d", version / 1000, version % 1000 / 10);
}

static bool is_control_file_closed(void)
{
    return access(CONTROL_FILE, F_OK) == 0 && access(CONTROL_FILE, R_OK | W_OK) < 0;
}

static void refuse_no_device(struct gad_error *error)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (is_control_file_closed())
        error_set(error, GAD_NO_ENGINE, "engine",
                  "this user may not use the NVIDIA devices: " CONTROL_FILE " is not to be opened");
    else
        error_set(error, GAD_NO_ENGINE, "engine", "the NVIDIA driver shows no device%s%.64s%s",
                  visible ? " (CUDA_VISIBLE_DEVICES is '" : "", visible ? visible : "",
                  visible ? "')" : "");
    error_expected(error, "at least one device");
    error_found(error, "none");
}

int card_refuse_driver(int cuda_error, struct gad_error *error)
{
    char ours[32], theirs[32];
    int driver, runtime;
    cuda_versions(&driver, &runtime);
    version_text(runtime, ours, sizeof(ours));
    version_text(driver, theirs, sizeof(theirs));
    if (driver == 0) {
        error_set(error, GAD_NO_ENGINE, "engine", "there is no NVIDIA driver here (%s)",
                  cuda_error_name(cuda_error));
        error_expected(error, "a driver for %s", ours);
        error_found(error, "none");
    } else if (is_named(cuda_error, "cudaErrorInsufficientDriver")) {
        error_set(error, GAD_NO_ENGINE, "engine",
                  "the NVIDIA driver is too old for this build: it is for %s, the build needs %s; "
                  "install a newer driver",
                  theirs, ours);
        error_expected(error, "a driver for %s", ours);
        error_found(error, "a driver for %s", theirs);
    } else if (cuda_error == 0 || is_named(cuda_error, "cudaErrorNoDevice")) {
        refuse_no_device(error);
    } else {
        return card_refuse_error("counting the devices", cuda_error, error);
    }
    return WORKER_EXIT_ABSENT;
}

int card_refuse_index(int index, int n_devices, struct gad_error *error)
{
    error_set(error, GAD_NO_ENGINE, "engine", "there is no device %d: the driver shows %d", index,
              n_devices);
    error_expected(error, "0 to %d", n_devices - 1);
    error_found(error, "%d", index);
    return WORKER_EXIT_ABSENT;
}

int card_refuse_slab(const char *setting, uint64_t n_bytes, uint64_t free_bytes,
                     const char *holders, int cuda_error, struct gad_error *error)
{
    error_set(error, GAD_NO_MEMORY, setting, "the memory for the pool is not to be had (%s)%s%s",
              cuda_error_name(cuda_error), holders[0] ? "; the device's memory is held by " : "",
              holders);
    error_expected(error, "%" PRIu64 " bytes", n_bytes);
    error_found(error, "%" PRIu64 " bytes free", free_bytes);
    return WORKER_EXIT_NO_MEMORY;
}

int card_refuse_error(const char *what, int cuda_error, struct gad_error *error)
{
    if (cuda_error < 0) {
        error_set(error, GAD_DEVICE_FAULT, "engine", "%s: %s", what, strerrordesc_np(-cuda_error));
        return WORKER_EXIT_FAULT;
    }
    if (is_named(cuda_error, "cudaErrorMemoryAllocation")) {
        error_set(error, GAD_NO_MEMORY, "engine", "%s: the device has no memory left (%s)", what,
                  cuda_error_name(cuda_error));
        return WORKER_EXIT_NO_MEMORY;
    }
    if (is_named(cuda_error, "cudaErrorNoKernelImageForDevice") ||
        is_named(cuda_error, "cudaErrorInvalidDeviceFunction")) {
        error_set(error, GAD_NO_ENGINE, "engine", "this build has no code for the device");
        error_expected(error, "%s", cuda_interpreter_architectures());
        return WORKER_EXIT_ABSENT;
    }
    bool is_absent = cuda_error_is_absent(cuda_error);
    error_set(error, is_absent ? GAD_NO_ENGINE : GAD_DEVICE_FAULT, "engine", "%s: %s (%s)", what,
              cuda_error_text(cuda_error), cuda_error_name(cuda_error));
    return is_absent ? WORKER_EXIT_ABSENT : WORKER_EXIT_FAULT;
}
