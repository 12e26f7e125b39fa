/* The worker with faults: a job's label says how its worker is to go wrong, when a tile begins.
 *
 *     fault:segv        SIGSEGV at tile 1, or at the only one
 *     fault:abort       SIGABRT, the same
 *     fault:hang        computes for ever, the same
 *     fault:stuck       sleeps for ever, the same
 *     fault:slow        50 ms a tile, every tile
 *     fault:kill@N      SIGKILL at tile N, once, as below
 *     fault:segv-once   SIGSEGV at tile 1, unless something is in the file $GPUARRAYD_FAULT_MARKER,
 *                       into which it writes before: so only the first attempt dies
 *     fault:escape      tries what a worker that was taken over would (worker_escape.c)
 *
 * Linked with the worker's own main and library; the function here takes the place of the empty one
 * there. Never installed.
 */
#include "daemon/worker/jobs/tile.h"
#include "tests/integration/worker_escape.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int marker_fd = -1;

/* A worker that serves opens no file. */
__attribute__((constructor)) static void open_marker(void)
{
    const char *path = getenv("GPUARRAYD_FAULT_MARKER");
    marker_fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
}

static bool is_first_attempt(void)
{
    char mark = '!';
    return marker_fd >= 0 && pread(marker_fd, &mark, 1, 0) == 0 &&
           pwrite(marker_fd, &mark, 1, 0) == 1;
}

static void sleep_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

void worker_fault_point(const char *label, uint64_t tile, uint64_t n_tiles)
{
    if (strncmp(label, "fault:", 6) != 0)
        return;
    const char *fault = label + 6;
    if (strcmp(fault, "slow") == 0)
        sleep_ms(50);
    if (strncmp(fault, "kill@", 5) == 0 && tile == strtoull(fault + 5, NULL, 10) &&
        is_first_attempt())
        raise(SIGKILL);
    if (tile != (n_tiles > 1 ? 1 : 0))
        return;
    if (strcmp(fault, "segv") == 0 || (strcmp(fault, "segv-once") == 0 && is_first_attempt())) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    } else if (strcmp(fault, "abort") == 0) {
        abort();
    } else if (strcmp(fault, "escape") == 0) {
        worker_escape();
    }
    while (strcmp(fault, "hang") == 0)
        atomic_signal_fence(memory_order_seq_cst);
    while (strcmp(fault, "stuck") == 0)
        sleep_ms(1000);
}
