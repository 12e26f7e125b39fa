/* What a descriptor is that a client handed over, asked with calls that cannot block: fcntl(),
 * statx() without synchronising, fdinfo, mountinfo. Nothing is read, mapped or changed. */
#pragma once

#include "daemon/broker/sessions/mounts.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct inspected {
    uint64_t device, inode; /* identity: the same for every descriptor of the file */
    uint64_t size_bytes;
    int64_t modified_ns, changed_ns; /* when: its bytes, anything of it */
    bool is_memory;      /* a file system in memory: what is allocated by writing is the writer's */
    bool has_holes;      /* other blocks than its size asks for; of files in memory */
    bool may_lose_pages; /* of a memfd: others may punch holes, and this descriptor cannot watch it
                          */
};

/* A regular file (or memfd) to read, or to write when is_output, on a local file system.
 * bad-descriptor (found: what it is instead), read-only, use-provider. `name`: the argument's. */
int inspect_file(struct mounts *mounts, int fd, bool is_output, const char *name,
                 struct inspected *ret, struct gad_error *error) GAD_MUST_CHECK;

/* A memfd with at least these seals (F_SEAL_...) and this size, open for reading, and for writing
 * when is_written. `status` is the refusal's code (bad-region, bad-descriptor, bad-chunk-table). */
int inspect_memfd(int fd, int seals, uint64_t min_size_bytes, bool is_written,
                  enum gad_status status, const char *name, struct inspected *ret,
                  struct gad_error *error) GAD_MUST_CHECK;

/* One of two sockets of packets that are connected with each other and have no name (socketpair()
 * with SOCK_SEQPACKET), made by a process of this user. */
int inspect_socketpair(int fd, uid_t uid, const char *name, struct gad_error *error) GAD_MUST_CHECK;

/* Whether closing it may wait for a server, or a process of somebody's. `mounts`: struct mounts. */
bool inspect_may_hang(void *mounts, int fd);

int inspect_eventfd(int fd, const char *name, struct gad_error *error) GAD_MUST_CHECK;
