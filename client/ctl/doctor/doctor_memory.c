/* doctor: shared memory, and whether the kernel keeps its word about memory.
 *
 * Arrays travel in memfds that are sealed and wholly reserved; so exactly that is tried, with one
 * page. /dev/shm is another mount of the same file system: its size bounds what other programs
 * share, not memfds. Called by doctor.c.
 */
#include "client/ctl/doctor/doctor.h"

#include "proto/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SHM_ENOUGH ((uint64_t)256 << 20)

/* NULL, or the step that failed, with errno. */
static const char *try_memfd(void)
{
    _cleanup_fd_ int fd = memfd_create("gpuarrayctl-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return "memfd_create";
    if (ftruncate(fd, 4096) || fallocate(fd, 0, 0, 4096))
        return "reserving a page of a memfd";
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
        return "sealing a memfd";
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return "mapping a memfd";
    munmap(page, 4096);
    return NULL;
}

void doctor_shared_memory(struct doctor *d)
{
    struct statvfs st;
    char text[32];
    const char *failed = try_memfd();
    if (failed) {
        doctor_say(d, FINDING_PROBLEM,
                   "allow it to this process: a container's or sandbox's filter of system calls, "
                   "or its memory limit, is in the way",
                   "%s fails: %s", failed, strerror(errno));
        return;
    }
    doctor_say(d, FINDING_OK, NULL, "memfds can be made, reserved and sealed");
    if (statvfs("/dev/shm", &st)) {
        doctor_say(d, FINDING_NOTE, "mount a tmpfs there, if other programs need it",
                   "there is no /dev/shm; gpuarrayd does not use it");
        return;
    }
    uint64_t n_bytes = (uint64_t)st.f_blocks * st.f_frsize;
    if (n_bytes >= SHM_ENOUGH || n_bytes == 0)
        doctor_say(d, FINDING_OK, NULL, "/dev/shm has %s",
                   n_bytes ? ctl_format_bytes((double)n_bytes, text) : "no limit");
    else
        doctor_say(d, FINDING_NOTE,
                   "start a container with a larger one (docker run --shm-size=2g), if other "
                   "programs need it",
                   "/dev/shm has only %s; that bounds other programs, not gpuarrayd's memfds",
                   ctl_format_bytes((double)n_bytes, text));
}

void doctor_overcommit(struct doctor *d)
{
    char mode[16];
    if (!doctor_read("/proc/sys/vm/overcommit_memory", mode, sizeof(mode)))
        return;
    if (strcmp(mode, "2") == 0)
        doctor_say(d, FINDING_WARNING,
                   "sudo sysctl vm.overcommit_memory=0, or a larger vm.overcommit_ratio",
                   "vm.overcommit_memory is 2: memory can be refused long before it is used up; "
                   "the pool and all regions count in full");
    else
        doctor_say(d, FINDING_OK, NULL, "vm.overcommit_memory is %s", mode);
}
