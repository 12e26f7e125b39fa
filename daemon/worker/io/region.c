/* Regions: mapped once when a session attaches them, read-only unless they are for outputs too.
 *
 * A region must be sealed against shrinking and growing and have memory behind every page, or else
 * the worker would be made to allocate for the client. A client can still punch holes later. Two
 * things catch that: the mapping is registered with userfaultfd in its SIGBUS mode, so that
 * touching a page that is gone raises the signal that guard.c turns into an error of the job
 * (system calls on it answer EFAULT); and at the end of a job the region's block count is compared.
 * Without userfaultfd (an old kernel, a container) only the second is there, and the first touch of
 * a punched page reads zeros.
 *
 * Pages that were allocated by fallocate() and never written count as holes for SEEK_HOLE but have
 * memory; st_blocks tells them apart.
 */
#include "daemon/worker/io/region.h"
#include "proto/util.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define N_BUCKETS 256u

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

struct regions {
    int fault_fd; /* userfaultfd, or -1 */
    unsigned n_mappings;
    struct regions_watch watch; /* mapped NULL: nobody */
    struct region *buckets[N_BUCKETS];
};

static int fault_fd_open(void)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (fd < 0)
        return -1;
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM};
    if (ioctl(fd, UFFDIO_API, &api) < 0)
        close_fd(&fd);
    return fd;
}

int regions_new(struct regions **ret_regions)
{
    struct regions *t = calloc(1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    t->fault_fd = fault_fd_open();
    *ret_regions = t;
    return 0;
}

struct regions *regions_free(struct regions *t)
{
    if (!t)
        return NULL;
    for (unsigned i = 0; i < N_BUCKETS; i++)
        while (t->buckets[i])
            region_detach(t, t->buckets[i]->id);
    close_fd(&t->fault_fd);
    free(t);
    return NULL;
}

void regions_watch(struct regions *t, const struct regions_watch *watch)
{
    t->watch = *watch;
}

unsigned regions_n_mappings(const struct regions *t)
{
    return t->n_mappings;
}

static struct region **region_place(struct regions *t, uint64_t id)
{
    struct region **p = &t->buckets[(id * UINT64_C(0x9e3779b97f4a7c15)) >> 56];
    while (*p && (*p)->id != id)
        p = &(*p)->next;
    return p;
}

/* The first hole in [low, high), or high. */
static int64_t first_hole(int fd, int64_t low, int64_t high)
{
    off_t hole = lseek(fd, low, SEEK_HOLE);
    return hole < 0 || hole > high ? high : hole;
}

/* No more either: pages behind the end would make up for missing ones before it. */
static bool has_all_blocks(const struct stat *st)
{
    uint64_t n_bytes = (uint64_t)st->st_blocks * 512, size = (uint64_t)st->st_size;
    return n_bytes >= size && n_bytes <= round_up_u64(size, max_u64((uint64_t)st->st_blksize, 512));
}

static int region_check(int fd, uint64_t size_bytes, int64_t *ret_n_blocks, struct gad_error *error)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return error_set(error, GAD_BAD_REGION, "region", "a region must be a memfd");
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
        return error_set(error, GAD_BAD_REGION, "region",
                         "a region must be sealed against shrinking and growing");
    if (size_bytes == 0 || size_bytes > INT64_MAX || (uint64_t)st.st_size < size_bytes) {
        error_set(error, GAD_BAD_REGION, "region", "the region is smaller than announced");
        error_expected(error, "%llu bytes", (unsigned long long)size_bytes);
        error_found(error, "%lld bytes", (long long)st.st_size);
        return GAD_BAD_REGION;
    }
    int64_t hole = first_hole(fd, 0, (int64_t)size_bytes);
    if (hole < (int64_t)size_bytes && !has_all_blocks(&st)) {
        error_set(error, GAD_BAD_REGION, "region",
                  "the region has a hole at byte %lld: its memory must be allocated",
                  (long long)hole);
        error_expected(error, "%lld bytes of memory", (long long)st.st_size);
        error_found(error, "%lld bytes", (long long)st.st_blocks * 512);
        return GAD_BAD_REGION;
    }
    *ret_n_blocks = st.st_blocks;
    return 0;
}

/* Refused for descriptors that are not writable, which are sealed against holes. */
void regions_watch_memory(const struct regions *t, void *memory, uint64_t n_bytes)
{
    struct uffdio_register request = {.range = {(uintptr_t)memory, round_up_u64(n_bytes, 4096)},
                                      .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (t->fault_fd >= 0)
        (void)ioctl(t->fault_fd, UFFDIO_REGISTER, &request);
}

static int region_map(struct regions *t, struct region *region, struct gad_error *error)
{
    int protection = PROT_READ | (region->is_writable ? PROT_WRITE : 0);
    region->base = mmap(NULL, region->size_bytes, protection, MAP_SHARED, region->fd, 0);
    if (region->base == MAP_FAILED) {
        int number = errno;
        region->base = NULL;
        if (number == EACCES || number == EPERM)
            return error_set(error, GAD_BAD_REGION, "region",
                             "the region's descriptor does not allow %s it",
                             region->is_writable ? "writing" : "reading");
        return -number;
    }
    t->n_mappings++;
    regions_watch_memory(t, region->base, region->size_bytes);
    return 0;
}

int region_attach(struct regions *t, uint64_t id, uint64_t size_bytes, bool is_writable,
                  int fd_take, struct gad_error *error)
{
    _cleanup_fd_ int fd = fd_take;
    int64_t n_blocks = 0;
    struct region **place = region_place(t, id);
    if (*place)
        return error_set(error, GAD_BAD_REQUEST, "region", "there is a region of this id already");
    int r = region_check(fd, size_bytes, &n_blocks, error);
    if (r)
        return r;
    struct region *region = calloc(1, sizeof(*region));
    if (!region)
        return -ENOMEM;
    *region = (struct region){.id = id,
                              .n_refs = 1,
                              .fd = fd,
                              .is_writable = is_writable,
                              .size_bytes = size_bytes,
                              .n_blocks = n_blocks,
                              .table = t};
    r = region_map(t, region, error);
    if (r) {
        free(region);
        return r;
    }
    steal_fd(&fd);
    *place = region;
    if (t->watch.mapped)
        t->watch.mapped(t->watch.argument, region);
    return 0;
}

void region_detach(struct regions *t, uint64_t id)
{
    struct region **place = region_place(t, id);
    struct region *region = *place;
    if (!region)
        return;
    *place = region->next;
    region->next = NULL;
    region_unref(region);
}

struct region *region_ref(struct regions *t, uint64_t id)
{
    struct region *region = *region_place(t, id);
    if (region)
        region->n_refs++;
    return region;
}

struct region *region_unref(struct region *region)
{
    if (region && --region->n_refs == 0) {
        const struct regions_watch *watch = &region->table->watch;
        if (watch->mapped)
            watch->unmapped(watch->argument, region);
        munmap(region->base, region->size_bytes);
        close(region->fd);
        region->table->n_mappings--;
        free(region);
    }
    return NULL;
}

bool region_is_intact(const struct region *region, uint64_t low, uint64_t high)
{
    struct stat st;
    if (fstat(region->fd, &st) < 0)
        return false;
    if (st.st_blocks >= region->n_blocks)
        return true;
    return first_hole(region->fd, (int64_t)low, (int64_t)high) == (int64_t)high;
}
