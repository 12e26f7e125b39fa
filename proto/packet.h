/* Packets of sockets that keep them apart (SOCK_SEQPACKET), and descriptors that come with them.
 * Bytes of a stream are sent with theirs in the same way. */
#pragma once

#include "proto/error.h"

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#define PACKET_MAX_FDS 253u /* the kernel's SCM_MAX_FD */

/* fds: n_fds of them, which stay the caller's; at most PACKET_MAX_FDS. flags: MSG_DONTWAIT or 0.
 * Bytes that were sent, or -errno; no signal. */
ssize_t packet_send(int fd, const void *bytes, size_t n_bytes, const int *fds, unsigned n_fds,
                    int flags) GAD_MUST_CHECK;
ssize_t packet_send_parts(int fd, struct iovec *parts, size_t n_parts, const int *fds,
                          unsigned n_fds, int flags) GAD_MUST_CHECK;

/* ret_fds: room for `most`; *ret_n_fds have come, which are the caller's whatever is returned.
 * Bytes that have come, 0 at the end, or -errno: -EMSGSIZE where a packet or its descriptors had no
 * room. */
ssize_t packet_receive(int fd, void *ret_bytes, size_t n_bytes, int *ret_fds, unsigned most,
                       unsigned *ret_n_fds, int flags) GAD_MUST_CHECK;
