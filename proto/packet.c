/* Packets with descriptors: the kernel's ancillary data, written and read in one place.
 *
 * Called by what the daemon, its helpers and clients have sockets between them for.
 */
#include "proto/packet.h"
#include "proto/util.h"

#include <string.h>
#include <sys/socket.h>

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(PACKET_MAX_FDS * sizeof(int))];
};

ssize_t packet_send_parts(int fd, struct iovec *parts, size_t n_parts, const int *fds,
                          unsigned n_fds, int flags)
{
    size_t fd_bytes = n_fds * sizeof(*fds);
    union control control;
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = n_parts};
    ssize_t n;
    if (n_fds > 0) {
        memset(&control, 0, sizeof(control));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(fd_bytes);
        memcpy(CMSG_DATA(&control.header), fds, fd_bytes);
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(fd_bytes);
    }
    do
        n = sendmsg(fd, &message, flags | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

ssize_t packet_send(int fd, const void *bytes, size_t n_bytes, const int *fds, unsigned n_fds,
                    int flags)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n_bytes};
    return packet_send_parts(fd, &part, 1, fds, n_fds, flags);
}

ssize_t packet_receive(int fd, void *ret_bytes, size_t n_bytes, int *ret_fds, unsigned most,
                       unsigned *ret_n_fds, int flags)
{
    union control control;
    struct iovec part = {.iov_base = ret_bytes, .iov_len = n_bytes};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_LEN(most * sizeof(*ret_fds))};
    ssize_t n;
    *ret_n_fds = 0;
    do
        n = recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message); /* an empty packet may have some, too */
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        size_t fd_bytes = header->cmsg_len - CMSG_LEN(0);
        memcpy(ret_fds, CMSG_DATA(header), fd_bytes);
        *ret_n_fds = (unsigned)(fd_bytes / sizeof(*ret_fds));
    }
    return message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EMSGSIZE : n;
}
