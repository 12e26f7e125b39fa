/* doctor: whether large results can be written around the page cache.
 *
 * RWF_DONTCACHE (Linux 6.14) has the kernel write back at once and drop the pages; where it or the
 * file system lacks that, the daemon has slower ways. Tried with one byte in a file without a name
 * in this folder, or in $TMPDIR, whichever is on a file system that cannot keep us waiting. Called
 * by doctor.c.
 */
#include "client/ctl/doctor/doctor.h"

#include "proto/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x00000080
#endif

static int open_unnamed(const char **ret_where)
{
    const char *places[] = {".", getenv("TMPDIR"), "/tmp"};
    for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
        bool is_tried = places[i] && doctor_is_local(places[i]);
        int fd = is_tried ? open(places[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
        *ret_where = i == 0 ? "this folder" : places[i];
        if (fd >= 0)
            return fd;
    }
    return -1;
}

void doctor_cache(struct doctor *d)
{
    const char *where;
    char byte = 0;
    struct iovec one = {.iov_base = &byte, .iov_len = 1};
    _cleanup_fd_ int fd = open_unnamed(&where);
    if (fd < 0)
        doctor_say(d, FINDING_NOTE,
                   "run doctor in a folder of a local file system where you may write",
                   "no file could be made to try it");
    else if (pwritev2(fd, &one, 1, 0, RWF_DONTCACHE) == 1)
        doctor_say(d, FINDING_OK, NULL, "large results leave it alone (RWF_DONTCACHE, %s)", where);
    else
        doctor_say(d, FINDING_NOTE, "nothing; Linux 6.14 or newer with ext4, xfs or btrfs has it",
                   "no RWF_DONTCACHE in %s: large results are written back piece by piece or "
                   "stay in the cache",
                   where);
}
