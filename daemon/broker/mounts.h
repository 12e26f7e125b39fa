/* Which file system a mount id belongs to, from /proc/self/mountinfo. Asking the file system itself
 * (statfs) could block on a server that is away. */
#pragma once

#include "proto/error.h"

#include <stddef.h>
#include <stdint.h>

#define MOUNT_TYPE_SIZE 24

struct mounts;

/* path: NULL for /proc/self/mountinfo */
int mounts_new(const char *path, struct mounts **ret_mounts) GAD_MUST_CHECK;
struct mounts *mounts_free(struct mounts *mounts); /* NULL */

/* "ext4"; NULL when there is no such mount here (of another mount namespace, or detached). Valid
 * until the next call. */
const char *mounts_type(struct mounts *mounts, uint64_t mount_id);

/* What we do with regular files of such a file system. */
enum mount_class {
    MOUNT_LOCAL,  /* served */
    MOUNT_PSEUDO, /* made up by the kernel: not data */
    MOUNT_OTHER,  /* may block or fail in ways of its own: through a provider */
};
enum mount_class mount_classify(const char *type); /* NULL: other */
