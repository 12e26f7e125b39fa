/* Inspection: every kind of descriptor that a client could hand over. */
#include "daemon/broker/sessions/inspect.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static struct mounts *mounts;
static struct inspected what;
static struct gad_error error;

static void set_up(void)
{
    cr_assert(eq(int, mounts_new(NULL, &mounts), 0));
}

static void tear_down(void)
{
    mounts_free(mounts);
}

static int memfd(off_t size, int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert(ge(int, fd, 0));
    cr_assert(eq(int, ftruncate(fd, size), 0));
    cr_assert(eq(int, fcntl(fd, F_ADD_SEALS, seals), 0));
    return fd;
}

/* A descriptor with other flags for the same file. */
static int reopen(int fd, int flags)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, flags | O_CLOEXEC);
}

static void refuse_as(int fd, enum gad_status status, const char *found)
{
    cr_assert(ge(int, fd, 0));
    cr_assert(eq(int, inspect_file(mounts, fd, false, "x", &what, &error), (int)status), "%s",
              error.message);
    cr_assert(ne(ptr, strstr(error.found, found), NULL), "found %s", error.found);
    cr_assert(eq(str, error.argument, "x"));
    close(fd);
}

Test(inspect, a_regular_file_is_taken_with_its_identity_and_size, .init = set_up, .fini = tear_down)
{
    char path[] = "/tmp/gpuarrayd-inspect-XXXXXX";
    int fd = mkstemp(path), again = open(path, O_RDONLY);
    struct inspected same;

    cr_assert(eq(int, ftruncate(fd, 12345), 0));
    cr_assert(eq(int, inspect_file(mounts, fd, true, "x", &what, &error), 0), "%s", error.message);
    cr_assert(eq(int, inspect_file(mounts, again, false, "x", &same, &error), 0));
    cr_assert(eq(u64, what.size_bytes, 12345));
    cr_assert(eq(u64, what.device, same.device));
    cr_assert(eq(u64, what.inode, same.inode));
    unlink(path);
}

Test(inspect, other_kinds_are_named, .init = set_up, .fini = tear_down)
{
    int pipes[2], sockets[2];

    cr_assert(eq(int, pipe(pipes), 0));
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0));
    refuse_as(pipes[0], GAD_BAD_DESCRIPTOR, "a pipe");
    refuse_as(pipes[1], GAD_BAD_DESCRIPTOR, "a pipe");
    refuse_as(sockets[0], GAD_BAD_DESCRIPTOR, "a socket");
    refuse_as(open("/dev/zero", O_RDWR), GAD_BAD_DESCRIPTOR, "a character device");
    refuse_as(open("/tmp", O_RDONLY), GAD_BAD_DESCRIPTOR, "a directory");
    refuse_as(open("/proc/self/status", O_RDONLY), GAD_BAD_DESCRIPTOR, "a file of proc");
    refuse_as(eventfd(0, 0), GAD_BAD_DESCRIPTOR, "an anonymous inode");
    refuse_as(open("/proc/self/exe", O_PATH), GAD_BAD_DESCRIPTOR, "O_PATH");
}

Test(inspect, flags_that_move_or_align_input_and_output_are_refused, .init = set_up,
     .fini = tear_down)
{
    char path[] = "/tmp/gpuarrayd-inspect-XXXXXX";
    int fd = mkstemp(path);

    refuse_as(open(path, O_RDWR | O_APPEND), GAD_BAD_DESCRIPTOR, "O_APPEND");
    int direct = open(path, O_RDONLY | O_DIRECT);
    if (direct >= 0)
        refuse_as(direct, GAD_BAD_DESCRIPTOR, "O_DIRECT");
    unlink(path);
    close(fd);
}

Test(inspect, the_descriptor_is_open_for_its_use, .init = set_up, .fini = tear_down)
{
    int fd = memfd(100, 0), reader = reopen(fd, O_RDONLY), writer = reopen(fd, O_WRONLY);

    cr_assert(eq(int, inspect_file(mounts, reader, false, "x", &what, &error), 0));
    cr_assert(eq(int, inspect_file(mounts, writer, true, "x", &what, &error), 0));
    cr_assert(eq(int, inspect_file(mounts, reader, true, "x", &what, &error), GAD_READ_ONLY));
    refuse_as(writer, GAD_BAD_DESCRIPTOR, "writing only");
}

Test(inspect, a_file_on_a_mount_that_is_not_known_goes_through_a_provider)
{
    char path[] = "/tmp/gpuarrayd-inspect-XXXXXX";
    int fd = mkstemp(path), memory = memfd(10, 0);

    cr_assert(eq(int, mounts_new("/dev/null", &mounts), 0));
    cr_assert(eq(int, inspect_file(mounts, memory, false, "x", &what, &error), 0));
    if (fcntl(fd, F_GET_SEALS) < 0) /* /tmp may be a tmpfs */
        refuse_as(fd, GAD_USE_PROVIDER, "not known");
    unlink(path);
    mounts_free(mounts);
}

Test(inspect, a_closed_descriptor_is_an_error_not_a_fault, .init = set_up, .fini = tear_down)
{
    cr_assert(lt(int, 0, inspect_file(mounts, 999, false, "x", &what, &error)));
    cr_assert(lt(int, 0, inspect_memfd(999, 0, 0, false, GAD_BAD_REGION, "x", &what, &error)));
    cr_assert(lt(int, 0, inspect_eventfd(999, "x", &error)));
}

static int check_memfd(int fd, int seals, uint64_t size, bool is_written)
{
    return inspect_memfd(fd, seals, size, is_written, GAD_BAD_REGION, "r", &what, &error);
}

Test(inspect, a_memfd_needs_its_seals_and_size)
{
    const int both = F_SEAL_SHRINK | F_SEAL_GROW;

    cr_assert(eq(int, check_memfd(memfd(4096, both), both, 4096, true), 0));
    cr_assert(eq(u64, what.size_bytes, 4096));
    cr_assert(eq(int, check_memfd(memfd(4096, 0), both, 4096, true), GAD_BAD_REGION));
    cr_assert(ne(ptr, strstr(error.found, "F_SEAL_SHRINK"), NULL));
    cr_assert(eq(int, check_memfd(memfd(4096, F_SEAL_SHRINK), both, 4096, true), GAD_BAD_REGION));
    cr_assert(ne(ptr, strstr(error.found, "F_SEAL_GROW"), NULL));
    cr_assert(eq(int, check_memfd(memfd(4095, both), both, 4096, true), GAD_BAD_REGION));
    cr_assert(ne(ptr, strstr(error.found, "4095"), NULL));
    cr_assert(
        eq(int, check_memfd(memfd(4096, both), both | F_SEAL_WRITE, 0, false), GAD_BAD_REGION));
    cr_assert(eq(int, check_memfd(memfd(0, both), both, UINT64_MAX, false), GAD_BAD_REGION));
}

Test(inspect, a_memfd_that_is_to_be_written_can_be_written)
{
    const int both = F_SEAL_SHRINK | F_SEAL_GROW;
    int fd = memfd(4096, both), sealed = memfd(4096, both | F_SEAL_WRITE);
    int reader = reopen(fd, O_RDONLY), writer = reopen(fd, O_WRONLY);

    cr_assert(eq(int, check_memfd(reader, both, 4096, false), 0));
    cr_assert(eq(int, check_memfd(reader, both, 4096, true), GAD_BAD_REGION));
    cr_assert(eq(int, check_memfd(writer, both, 4096, true), GAD_BAD_REGION));
    cr_assert(eq(int, check_memfd(writer, both, 4096, false), GAD_BAD_REGION));
    cr_assert(eq(int, check_memfd(sealed, both, 4096, false), 0));
    cr_assert(eq(int, check_memfd(sealed, both, 4096, true), GAD_BAD_REGION));
}

Test(inspect, what_is_no_memfd_is_no_region)
{
    char path[] = "/tmp/gpuarrayd-inspect-XXXXXX";
    int fd = mkstemp(path), pipes[2];

    cr_assert(eq(int, pipe(pipes), 0));
    cr_assert(eq(int, check_memfd(fd, F_SEAL_SHRINK, 0, false), GAD_BAD_REGION));
    cr_assert(eq(int, check_memfd(pipes[0], 0, 0, false), GAD_BAD_REGION));
    cr_assert(ne(ptr, strstr(error.found, "a pipe"), NULL));
    cr_assert(eq(int, check_memfd(reopen(memfd(1, 0), O_PATH), 0, 0, false), GAD_BAD_REGION));
    unlink(path);
}

Test(inspect, eventfds_are_told_from_others)
{
    int fd = eventfd(0, EFD_CLOEXEC), other = open("/dev/null", O_RDWR);

    cr_assert(eq(int, inspect_eventfd(fd, "x", &error), 0));
    cr_assert(eq(int, inspect_eventfd(other, "x", &error), GAD_BAD_DESCRIPTOR));
}
