/* The descriptors of a ring, before they are used: a memfd that keeps its size, large enough for
 * what the request says, and two eventfds. The broker has looked at them too, to refuse early; the
 * worker relies on nothing but itself.
 *
 * Called by ring_new().
 */
#include "daemon/worker/io/ring_check.h"
#include "proto/wire/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_memory(uint32_t n_slots, uint64_t slot_bytes, const char *name, int fd,
                        struct gad_error *error)
{
    uint64_t n_bytes = ring_size_bytes(n_slots, slot_bytes);
    struct stat st;
    if (n_bytes == 0) {
        error_set(error, GAD_BAD_DESCRIPTOR, name, "the ring's slots are out of limits");
        error_expected(error, "1 to %u slots of %u to %u bytes", RING_MAX_SLOTS,
                       RING_MIN_SLOT_BYTES, RING_MAX_SLOT_BYTES);
        error_found(error, "%u slots of %llu bytes", n_slots, (unsigned long long)slot_bytes);
        return GAD_BAD_DESCRIPTOR;
    }
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
        return error_set(error, GAD_BAD_DESCRIPTOR, name,
                         "the ring must be a memfd sealed against shrinking and growing");
    if (fstat(fd, &st) < 0)
        return -errno;
    if ((uint64_t)st.st_size < n_bytes) {
        error_set(error, GAD_BAD_DESCRIPTOR, name, "the ring is smaller than announced");
        error_expected(error, "%llu bytes", (unsigned long long)n_bytes);
        error_found(error, "%lld bytes", (long long)st.st_size);
        return GAD_BAD_DESCRIPTOR;
    }
    return 0;
}

/* Writing to anything else, a pipe say, would mean something else. */
static bool is_eventfd(int fd)
{
    char link[64], target[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, target, sizeof(target) - 1);
    if (n < 0)
        return false;
    target[n] = '\0';
    return strcmp(target, "anon_inode:[eventfd]") == 0;
}

int ring_check(const struct array *array, const char *name, int ring_fd, int request_fd,
               int done_fd, struct gad_error *error)
{
    int r = check_memory(array->at.provider.n_slots, array->at.provider.slot_bytes, name, ring_fd,
                         error);
    if (!r && (!is_eventfd(request_fd) || !is_eventfd(done_fd)))
        r = error_set(error, GAD_BAD_DESCRIPTOR, name, "the ring is signalled by eventfds only");
    return r;
}
