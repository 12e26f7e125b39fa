/* The socket's place: who may own it, who was there first, what an earlier daemon left. */
#include "daemon/broker/host/rundir.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[64], path[128];

static void set_up(void)
{
    snprintf(base, sizeof(base), "/tmp/gpuarrayd-rundir-XXXXXX");
    cr_assert(ne(ptr, mkdtemp(base), NULL));
    snprintf(path, sizeof(path), "%s/d/socket", base);
}

static void tear_down(void)
{
    char command[160];
    snprintf(command, sizeof(command), "rm -rf '%s'", base);
    cr_assert(eq(int, system(command), 0));
}

static char *directory(void)
{
    static char d[100];
    snprintf(d, sizeof(d), "%s/d", base);
    return d;
}

Test(rundir, makes_a_private_directory, .init = set_up, .fini = tear_down)
{
    struct stat st;

    cr_assert(eq(int, rundir_prepare(path), 0));
    cr_assert(eq(int, stat(directory(), &st), 0));
    cr_assert(eq(uint, st.st_mode & 07777, 0700));
    cr_assert(eq(int, rundir_prepare(path), 0));
}

Test(rundir, refuses_a_directory_that_others_can_enter, .init = set_up, .fini = tear_down)
{
    cr_assert(eq(int, mkdir(directory(), 0755), 0));
    cr_assert(eq(int, rundir_prepare(path), -EPERM));
}

Test(rundir, refuses_a_symbolic_link, .init = set_up, .fini = tear_down)
{
    char target[100];

    snprintf(target, sizeof(target), "%s/t", base);
    cr_assert(eq(int, mkdir(target, 0700), 0));
    cr_assert(eq(int, symlink(target, directory()), 0));
    cr_assert(lt(int, rundir_prepare(path), 0));
}

Test(rundir, refuses_a_directory_of_somebody_else, .init = set_up, .fini = tear_down)
{
    if (geteuid() != 0)
        cr_skip_test("needs root");
    cr_assert(eq(int, mkdir(directory(), 0700), 0));
    cr_assert(eq(int, chown(directory(), 12345, 12345), 0));
    cr_assert(eq(int, rundir_prepare(path), -EPERM));
}

Test(rundir, one_daemon_has_the_lock, .init = set_up, .fini = tear_down)
{
    int first = -1, second = -1;

    cr_assert(eq(int, rundir_prepare(path), 0));
    cr_assert(eq(int, rundir_lock(path, &first), 0));
    cr_assert(eq(int, rundir_lock(path, &second), -EWOULDBLOCK));
    close(first);
    cr_assert(eq(int, rundir_lock(path, &second), 0));
    close(second);
}

Test(rundir, replaces_the_socket_of_a_dead_daemon_and_sets_the_mode, .init = set_up,
     .fini = tear_down)
{
    struct stat st;
    int first = -1, second = -1;

    cr_assert(eq(int, rundir_prepare(path), 0));
    cr_assert(eq(int, rundir_listen(path, 0600, (gid_t)-1, &first), 0));
    close(first);
    cr_assert(eq(int, rundir_listen(path, 0660, (gid_t)-1, &second), 0));
    cr_assert(eq(int, stat(path, &st), 0));
    cr_assert(eq(uint, st.st_mode & 0777, 0660));
    close(second);
}

Test(rundir, does_not_touch_what_is_no_socket, .init = set_up, .fini = tear_down)
{
    int fd, unused = -1;

    cr_assert(eq(int, rundir_prepare(path), 0));
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    cr_assert(eq(int, rundir_listen(path, 0600, (gid_t)-1, &unused), -EEXIST));
    cr_assert(eq(int, access(path, F_OK), 0));
}

Test(rundir, a_path_that_does_not_fit_is_refused, .init = set_up, .fini = tear_down)
{
    char longer[400];
    int unused = -1;

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    memcpy(longer, "/tmp/", 5);
    cr_assert(eq(int, rundir_listen(longer, 0600, (gid_t)-1, &unused), -ENAMETOOLONG));
}

static atomic_bool has_ended;
static atomic_uint n_closed;

static void *look(void *argument)
{
    struct stat st;
    while (!has_ended)
        if (stat(argument, &st) == 0 && (st.st_mode & 0777) != 0666)
            n_closed++;
    return NULL;
}

Test(rundir, nobody_ever_finds_the_socket_closed, .init = set_up, .fini = tear_down)
{
    pthread_t thread;
    int fd = -1;

    cr_assert(eq(int, rundir_prepare(path), 0));
    cr_assert(eq(int, pthread_create(&thread, NULL, look, path), 0));
    for (unsigned i = 0; i < 3000; i++) {
        cr_assert(eq(int, rundir_listen(path, 0666, getegid(), &fd), 0));
        close(fd);
    }
    has_ended = true;
    pthread_join(thread, NULL);
    cr_assert(eq(uint, n_closed, 0));
}

Test(rundir, the_socket_goes_to_the_group_that_is_wanted, .init = set_up, .fini = tear_down)
{
    struct stat st;
    gid_t group = getegid(), none = 7;
    int fd;

    if (geteuid() == 0)
        group = 65534;
    cr_assert(eq(int, rundir_prepare(path), 0));
    cr_assert(eq(int, rundir_listen(path, 0660, group, &fd), 0));
    cr_assert(eq(int, stat(path, &st), 0));
    cr_assert(eq(uint, st.st_gid, group));
    cr_assert(eq(uint, st.st_mode & 0777, 0660));
    close(fd);
    cr_assert(eq(int, rundir_find_group("root", &group), 0));
    cr_assert(eq(uint, group, 0));
    cr_assert(eq(int, rundir_find_group("4711", &group), 0));
    cr_assert(eq(uint, group, 4711));
    cr_assert(eq(int, rundir_find_group("no-such-group", &none), -ENOENT));
    cr_assert(eq(int, rundir_find_group("-1", &none), -ENOENT));
    cr_assert(eq(int, rundir_find_group("4294967295", &none), -ENOENT));
    cr_assert(eq(uint, none, 7));
}
