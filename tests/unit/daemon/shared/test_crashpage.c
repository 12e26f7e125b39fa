/* The crash page: both sides see the same memory, nobody can take it away, other files are refused.
 */
#include "daemon/crashpage.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

Test(crashpage, both_sides_see_what_is_in_hand)
{
    struct crashpage *worker, *broker;
    int fd;

    cr_assert(eq(int, crashpage_create(&fd), 0));
    cr_assert(eq(int, crashpage_map(fd, &worker), 0));
    cr_assert(eq(int, crashpage_map(fd, &broker), 0));
    cr_assert(eq(int, close(fd), 0));
    struct crashpage_thread *mine = &worker->threads[CRASHPAGE_MAX_THREADS - 1];
    const struct crashpage_thread *seen = &broker->threads[CRASHPAGE_MAX_THREADS - 1];
    cr_assert(eq(u64, atomic_load(&seen->job), 0));
    crashpage_enter(mine, 12, 34, 56, CRASHPAGE_BLOCKING);
    cr_assert(eq(u64, atomic_load(&seen->job), 12));
    cr_assert(eq(u64, atomic_load(&seen->tile), 34));
    cr_assert(eq(u64, atomic_load(&seen->since_ns), 56));
    cr_assert(eq(uint, atomic_load(&seen->state), CRASHPAGE_BLOCKING));
    crashpage_leave(mine);
    cr_assert(eq(u64, atomic_load(&seen->job), 0));
    cr_assert(eq(uint, atomic_load(&seen->state), CRASHPAGE_IDLE));
    crashpage_unmap(worker);
    crashpage_unmap(broker);
    crashpage_unmap(NULL);
}

Test(crashpage, its_size_is_sealed_and_it_is_closed_on_exec)
{
    int fd;

    cr_assert(eq(int, crashpage_create(&fd), 0));
    cr_assert(eq(int, ftruncate(fd, 0), -1));
    cr_assert(eq(int, ftruncate(fd, 1 << 20), -1));
    cr_assert(eq(int, fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC));
    close(fd);
}

Test(crashpage, other_descriptors_are_refused)
{
    struct crashpage *page = NULL;
    int unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int small = memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    cr_assert(eq(int, ftruncate(unsealed, sizeof(struct crashpage)), 0));
    cr_assert(eq(int, crashpage_map(unsealed, &page), -EINVAL));
    cr_assert(eq(int, ftruncate(small, 4096), 0));
    cr_assert(eq(int, fcntl(small, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0));
    cr_assert(eq(int, crashpage_map(small, &page), -EINVAL));
    cr_assert(lt(int, crashpage_map(null, &page), 0));
    cr_assert(eq(int, crashpage_map(-1, &page), -EBADF));
    cr_assert(eq(ptr, page, NULL));
    close(unsealed);
    close(small);
    close(null);
}
