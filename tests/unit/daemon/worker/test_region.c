#include "daemon/worker/io/guard.h"
#include "daemon/worker/io/region.h"
#include "tests/unit/daemon/worker/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define SIZE  (1u << 20)

static void punch(int fd, off_t offset, off_t size)
{
    cr_assert(eq(int, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size), 0));
}

static struct regions *make(void)
{
    struct regions *t = NULL;
    cr_assert(eq(int, regions_new(&t), 0));
    return t;
}

Test(region, is_mapped_while_somebody_uses_it)
{
    struct regions *t = make();
    struct gad_error error;
    cr_assert(eq(int, region_attach(t, 7, SIZE, true, make_memfd(SIZE, SEALS), &error), 0));
    struct region *region = region_ref(t, 7);
    cr_assert(region != NULL);
    cr_assert(eq(ptr, region_ref(t, 8), NULL));
    region_detach(t, 7);
    cr_assert(eq(ptr, region_ref(t, 7), NULL));
    memset(region->base, 1, SIZE);
    cr_assert(eq(u32, regions_n_mappings(t), 1));
    region_unref(region);
    cr_assert(eq(u32, regions_n_mappings(t), 0));
    regions_free(t);
}

Test(region, refuses_what_can_change_under_it)
{
    struct regions *t = make();
    struct gad_error error;
    int sparse = make_memfd(SIZE, 0);
    punch(sparse, 8192, 4096);
    cr_assert(eq(int, fcntl(sparse, F_ADD_SEALS, SEALS), 0));
    cr_assert(eq(int, region_attach(t, 1, SIZE, false, sparse, &error), GAD_BAD_REGION));
    cr_assert(eq(int, region_attach(t, 1, SIZE, false, make_memfd(SIZE, F_SEAL_GROW), &error),
                 GAD_BAD_REGION));
    cr_assert(eq(int, region_attach(t, 1, SIZE + 1, false, make_memfd(SIZE, SEALS), &error),
                 GAD_BAD_REGION));
    cr_assert(ne(str, error.expected, text("")));
    cr_assert(
        eq(int, region_attach(t, 1, 0, false, make_memfd(SIZE, SEALS), &error), GAD_BAD_REGION));
    cr_assert(eq(int, region_attach(t, 1, UINT64_MAX, false, make_memfd(SIZE, SEALS), &error),
                 GAD_BAD_REGION));
    cr_assert(
        eq(int, region_attach(t, 1, SIZE, false, make_file("abc", 3), &error), GAD_BAD_REGION));
    cr_assert(eq(int,
                 region_attach(t, 1, SIZE, true, make_memfd(SIZE, SEALS | F_SEAL_WRITE), &error),
                 GAD_BAD_REGION));
    cr_assert(eq(u32, regions_n_mappings(t), 0));
    regions_free(t);
}

Test(region, of_an_id_exists_once)
{
    struct regions *t = make();
    struct gad_error error;
    cr_assert(eq(int, region_attach(t, 1, SIZE, true, make_memfd(SIZE, SEALS), &error), 0));
    cr_assert(
        eq(int, region_attach(t, 1, SIZE, true, make_memfd(SIZE, SEALS), &error), GAD_BAD_REQUEST));
    cr_assert(eq(int, region_attach(t, 257, SIZE, true, make_memfd(SIZE, SEALS), &error), 0));
    regions_free(t);
}

Test(region, knows_when_its_memory_was_taken_away)
{
    struct regions *t = make();
    struct gad_error error;
    int fd = make_memfd(SIZE, SEALS), copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    cr_assert(eq(int, region_attach(t, 1, SIZE, true, fd, &error), 0));
    struct region *region = region_ref(t, 1);
    memset(region->base, 1, SIZE);
    cr_assert(region_is_intact(region, 0, SIZE));
    punch(copy, 4096, 4096);
    cr_assert(region_is_intact(region, 0, 4096));
    cr_assert(region_is_intact(region, 8192, SIZE));
    cr_assert(not(region_is_intact(region, 0, 4097)));
    region_unref(region);
    close(copy);
    regions_free(t);
}

static int touch(void *p)
{
    return *(volatile char *)p;
}

static int guarded_touch(const struct guard_range *range, char *p, const void **ret_address)
{
    return guard_call(range, 1, touch, p, ret_address);
}

/* A file that was cut: its pages raise SIGBUS wherever the kernel runs. */
static char *map_cut_file(void)
{
    char bytes[8192] = {1};
    int fd = make_file(bytes, sizeof(bytes));
    char *p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    cr_assert(eq(int, ftruncate(fd, 4096), 0));
    close(fd);
    return p;
}

Test(guard, turns_a_sigbus_into_an_error_and_says_where)
{
    char *p = map_cut_file();
    const struct guard_range range = {p, 8192};
    const void *address = NULL;
    cr_assert(eq(int, guard_install(), 0));
    cr_assert(eq(int, guarded_touch(&range, p, &address), 1));
    for (int i = 0; i < 3; i++) {
        cr_assert(eq(int, guarded_touch(&range, p + 5000, &address), -EFAULT));
        cr_assert(eq(ptr, (void *)address, p + 5000));
    }
    munmap(p, 8192);
}

Test(guard, lets_a_fault_elsewhere_end_the_process, .signal = SIGBUS)
{
    char *p = map_cut_file();
    const struct guard_range range = {p, 4096};
    const void *address;
    cr_assert(eq(int, guard_install(), 0));
    guarded_touch(&range, p + 5000, &address);
}

Test(guard, catches_a_punched_page_of_a_region)
{
    struct regions *t = make();
    struct gad_error error;
    int fd = make_memfd(SIZE, SEALS), copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    cr_assert(eq(int, guard_install(), 0));
    cr_assert(eq(int, region_attach(t, 1, SIZE, false, fd, &error), 0));
    struct region *region = region_ref(t, 1);
    const struct guard_range range = {region->base, SIZE};
    const void *address;
    cr_assert(eq(int, guarded_touch(&range, region->base + 5000, &address), 0));
    punch(copy, 4096, 4096);
    int r = guarded_touch(&range, region->base + 5000, &address);
    if (r == 0)
        cr_skip("no userfaultfd here");
    cr_assert(eq(int, r, -EFAULT));
    region_unref(region);
    close(copy);
    regions_free(t);
}
