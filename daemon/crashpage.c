/* Making and mapping the crash page (see crashpage.h). The broker makes it once per worker, hands
 * the descriptor down and maps it too; each side keeps its mapping as long as it lives.
 *
 * The memfd is sealed against shrinking and growing, so neither side can take pages away from under
 * the other: reading it can never fault. Whoever maps checks size and seals first.
 */
#include "daemon/crashpage.h"
#include "proto/util.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define CRASHPAGE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

int crashpage_create(int *ret_fd)
{
    _cleanup_fd_ int fd = memfd_create("gpuarrayd-crash-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return -errno;
    if (ftruncate(fd, sizeof(struct crashpage)) < 0)
        return -errno;
    if (fcntl(fd, F_ADD_SEALS, CRASHPAGE_SEALS | F_SEAL_SEAL) < 0)
        return -errno;
    *ret_fd = steal_fd(&fd);
    return 0;
}

int crashpage_map(int fd, struct crashpage **ret_page)
{
    struct stat status;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0)
        return -errno;
    if (fstat(fd, &status) < 0)
        return -errno;
    if ((seals & CRASHPAGE_SEALS) != CRASHPAGE_SEALS ||
        status.st_size != (off_t)sizeof(struct crashpage))
        return -EINVAL;
    void *page = mmap(NULL, sizeof(struct crashpage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return -errno;
    *ret_page = page;
    return 0;
}

void crashpage_unmap(struct crashpage *page)
{
    if (!page)
        return;
    int r = munmap(page, sizeof(*page));
    assert(r == 0);
    (void)r;
}
