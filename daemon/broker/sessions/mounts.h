/* Which file system a mount id or device belongs to, from /proc/self/mountinfo. Asking the file
 * system itself (statfs) could block on a server that is away. */
#pragma once

#include "proto/error.h"
#include "proto/system/file_systems.h"

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
/* The same by the number of the device (major << 32 | minor) that a mount here holds. Files on
 * subvolumes of btrfs, and some of overlay, have numbers of their own and are not found by it. */
const char *mounts_type_of_device(struct mounts *mounts, uint64_t device);
