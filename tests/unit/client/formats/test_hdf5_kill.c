/* A process that is killed while a dataset is added to an existing file, after each of the system
 * calls that change the file in turn: what was there can be read afterwards, by HDF5 alone, and
 * what is added next. The last calls are made by a child: where it dies too, HDF5 may have to wait
 * for us.
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(hdf5_kill, .init = folder_make, .fini = folder_remove, .timeout = 60);

/* Links: a group is kept in several places from some ten on, in levels from 256. */
#define MANY 300

static enum { PROCESS, CHILD, BOTH } victim;
static pid_t process;
static int n_left;   /* changes until it is killed; 0: it lives */
static bool is_full; /* instead, that one and those behind it fail */

static void count_change(void)
{
    if (n_left == 0 || is_full || --n_left > 0)
        return;
    if (victim != CHILD)
        kill(process, SIGKILL);
    if (victim != PROCESS && getpid() != process)
        kill(getpid(), SIGKILL);
}

static bool has_failed(void)
{
    if (!is_full || n_left == 0 || (n_left > 1 && n_left--))
        return false;
    errno = ENOSPC;
    return true;
}

ssize_t pwrite64(int fd, const void *bytes, size_t n_bytes, off_t offset);
int ftruncate64(int fd, off_t size);

ssize_t pwrite64(int fd, const void *bytes, size_t n_bytes, off_t offset)
{
    if (has_failed())
        return -1;
    ssize_t n = syscall(SYS_pwrite64, fd, bytes, n_bytes, offset);
    count_change();
    return n;
}

int ftruncate64(int fd, off_t size)
{
    if (has_failed())
        return -1;
    int r = (int)syscall(SYS_ftruncate, fd, size);
    count_change();
    return r;
}

static const int64_t shape[1] = {50000};

static bool add(const char *spec, const struct gad_storage *storage)
{
    struct gad_array *array;
    int r = format_create(NULL, spec, false, DTYPE_FLOAT64, 1, shape, false, storage, &array,
                          &last_error);
    for (int64_t at = 0; r == 0 && at < shape[0]; at += 10000) {
        static double block[10000];
        const int64_t count = 10000;
        for (int i = 0; i < 10000; i++)
            block[i] = (double)(at + i);
        r = array->provider->drain(array->provider_state, &at, &count, block);
    }
    if (r == 0)
        r = array->commit(array, &last_error);
    if (r)
        return false;
    array->is_committed = true;
    gad_array_release(array);
    return true;
}

/* Whether there were as many changes. Returns when nobody changes the file any more. */
static bool is_killed_after(int n, const struct gad_storage *storage)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        process = getpid();
        n_left = n;
        bool is_added = add("f.h5:/g/new", storage);
        _exit(!is_added ? 1 : n_left > 0 ? 0 : 2);
    }
    cr_assert(eq(int, waitpid(pid, &status, 0), pid));
    bool is_killed = WIFSIGNALED(status) || WEXITSTATUS(status) == 2;
    cr_assert(is_killed || status == 0, "added nothing");
    int fd = open("f.h5", O_RDWR);
    cr_assert(zero(int, flock(fd, LOCK_EX)));
    close(fd);
    return is_killed;
}

static void make_file(bool is_new_format, int n_links, hsize_t user_block)
{
    char name[16];
    const hsize_t dims[] = {100}, chunk[] = {30};
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), fcpl = H5Pcreate(H5P_FILE_CREATE);
    if (is_new_format)
        H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    H5Pset_userblock(fcpl, user_block);
    unlink("f.h5");
    hid_t file = H5Fcreate("f.h5", H5F_ACC_EXCL, fcpl, fapl);
    for (int i = 0; i < n_links; i++) {
        snprintf(name, sizeof(name), "d%d", i);
        h5_put(file, name, H5T_IEEE_F64LE, 1, dims, i % 2 ? chunk : NULL, 0);
    }
    H5Fclose(file);
    H5Pclose(fapl);
    H5Pclose(fcpl);
}

static bool is_readable(hid_t file, const char *name)
{
    double values[100];
    hid_t id = H5Dopen2(file, name, H5P_DEFAULT);
    bool is_read =
        id > 0 && H5Dread(id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
    for (int i = 0; i < 100 && is_read; i++)
        is_read = values[i] == i;
    if (id > 0)
        H5Dclose(id);
    return is_read;
}

static herr_t count_link(hid_t group, const char *name, const H5L_info_t *info, void *data)
{
    (void)group, (void)info;
    *(int *)data += name[0] == 'd';
    return 0;
}

/* Whether all is there that was. */
static bool check_file(int n_links)
{
    char name[16];
    int n_found = 0, step = n_links > 100 ? 37 : 1;
    hid_t file = H5Fopen("f.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    cr_assert(file > 0, "it cannot be opened");
    bool is_whole = H5Literate(file, H5_INDEX_NAME, H5_ITER_INC, NULL, count_link, &n_found) >= 0 &&
                    n_found == n_links;
    for (int i = 0; i < n_links && is_whole; i += step) {
        snprintf(name, sizeof(name), "d%d", i);
        is_whole = is_readable(file, name);
    }
    H5Fclose(file);
    return is_whole;
}

static void copy_file(const char *from, const char *to)
{
    struct stat st;
    int source = open(from, O_RDONLY), target = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    fstat(source, &st);
    cr_assert(
        eq(i64, copy_file_range(source, NULL, target, NULL, (size_t)st.st_size, 0), st.st_size));
    close(source);
    close(target);
}

static void kill_everywhere(bool is_new_format, int n_links, hsize_t user_block,
                            const struct gad_storage *storage)
{
    int n = 1;
    make_file(is_new_format, n_links, user_block);
    rename("f.h5", "before.h5");
    for (bool is_killed = true; is_killed; n++) {
        copy_file("before.h5", "f.h5");
        is_killed = is_killed_after(n, storage);
        if (victim == BOTH) /* HDF5 may crash until one of us has read the file */
            gad_array_release(open_ok("f.h5:/d1"));
        cr_assert(check_file(n_links), "killed after %d changes: something is lost", n);
        cr_assert(add("f.h5:/next", NULL), "killed after %d changes: %s", n, last_error.message);
        cr_assert(check_file(n_links), "killed after %d changes: lost by the next", n);
    }
    cr_assert(lt(int, 8, n));
}

static const struct gad_storage packed = {.n_chunk_axes = -1, .compress = "gzip:1"};

Test(hdf5_kill, leaves_what_was_in_a_file_of_the_old_format)
{
    kill_everywhere(false, 3, 0, NULL);
    kill_everywhere(false, 3, 512, &packed);
    kill_everywhere(false, 12, 0, &packed);
    kill_everywhere(false, MANY, 0, NULL);
}

Test(hdf5_kill, leaves_what_was_in_a_file_of_the_new_format_without_a_mark)
{
    kill_everywhere(true, 3, 0, &packed);
    kill_everywhere(true, MANY, 0, NULL);
}

Test(hdf5_kill, goes_on_where_its_child_is_killed)
{
    victim = CHILD;
    kill_everywhere(false, 12, 0, NULL);
    kill_everywhere(true, 3, 0, NULL);
}

/* The next of ours undoes what was begun. */
Test(hdf5_kill, leaves_what_was_there_where_both_are_killed)
{
    victim = BOTH;
    kill_everywhere(false, 12, 512, &packed);
    kill_everywhere(false, MANY, 0, NULL);
    kill_everywhere(true, MANY, 0, NULL);
}

/* Ends as a process does, which closes HDF5. */
static int add_to_full(int n)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        n_left = n;
        is_full = true;
        bool is_added = add("f.h5:/g/new", NULL);
        n_left = 0;
        bool is_next = is_added || add("f.h5:/next", NULL);
        _exit(H5close() < 0 || !is_next ? 2 : is_added);
    }
    cr_assert(eq(int, waitpid(pid, &status, 0), pid));
    bool has_ended = WIFEXITED(status);
    cr_assert(has_ended, "after %d changes: status %d", n, status);
    return WEXITSTATUS(status);
}

Test(hdf5_kill, a_change_that_cannot_be_written_fails_that_output_alone)
{
    int n = 1, status = 0;
    for (; status == 0; n++) {
        make_file(n % 2, 3, 0);
        status = add_to_full(n);
        cr_assert(check_file(3));
    }
    cr_assert(eq(int, status, 1), "after %d changes", n - 1);
    cr_assert(lt(int, 8, n));
}
