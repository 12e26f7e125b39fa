/* A fault of the device ends the worker: every later call on the context would fail or lie, and
 * freeing it could wait for a kernel that never ends. So: one line for the log and _exit(). The
 * crash page is left as it is; it names the tiles that were at the device.
 *
 * Two threads may meet the same fault; the one that comes second waits for the end of the process
 * without a word.
 *
 * Called by the engine's threads.
 */
#include "daemon/worker/cuda/fault.h"
#include "daemon/worker_exit.h"
#include "kernels/cuda/runtime.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

_Noreturn void device_fault(const char *what, int cuda_error)
{
    static atomic_flag is_ending = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&is_ending))
        pause();
    fprintf(stderr, "<3>gpuarrayd-worker-cuda: %s: %s (%s); the device's work is given up\n", what,
            cuda_error_text(cuda_error), cuda_error_name(cuda_error));
    _exit(WORKER_EXIT_FAULT);
}
