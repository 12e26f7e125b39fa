/* A process that is killed while a dataset is added to an existing file, after each of the system
 * calls that change the file in turn: what was there can be read afterwards, and what is added
 * next.
 */
#include "support.h"

#include <errno.h>
#include <hdf5.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(hdf5_kill, .init = folder_make, .fini = folder_remove, .timeout = 60);

#define MANY 12 /* links: enough for a group to be kept in several places */

static int n_left;   /* changes until this process is killed; 0: it lives */
static bool is_full; /* instead, that one and those behind it fail */

static void count_change(void)
{
    if (n_left > 0 && !is_full && --n_left == 0)
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

static bool is_killed_after(int n, const struct gad_storage *storage)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        n_left = n;
        _exit(add("f.h5:/g/new", storage) ? 0 : 1);
    }
    cr_assert(eq(int, waitpid(pid, &status, 0), pid));
    bool is_killed = WIFSIGNALED(status);
    cr_assert(is_killed || status == 0, "added nothing");
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

/* Whether all is there that was. */
static bool check_file(int n_links, int n)
{
    char name[16];
    bool is_whole = true;
    hid_t file = H5Fopen("f.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    cr_assert(file > 0, "killed after %d changes: it cannot be opened", n);
    for (int i = 0; i < n_links && is_whole; i++) {
        snprintf(name, sizeof(name), "d%d", i);
        is_whole = is_readable(file, name);
    }
    H5Fclose(file);
    return is_whole;
}

/* Returns after how many changes something is lost. */
static int kill_everywhere(bool is_new_format, int n_links, hsize_t user_block,
                           const struct gad_storage *storage)
{
    int n = 1, n_lost = 0;
    for (bool is_killed = true; is_killed; n++) {
        make_file(is_new_format, n_links, user_block);
        is_killed = is_killed_after(n, storage);
        n_lost += !check_file(n_links, n);
        if (!is_new_format && n_links == MANY)
            continue;
        cr_assert(add("f.h5:/next", NULL), "killed after %d changes: %s", n, last_error.message);
        cr_assert(check_file(n_links, n), "killed after %d changes: lost by the next", n);
    }
    cr_assert(lt(int, 8, n));
    return n_lost;
}

static const struct gad_storage packed = {.n_chunk_axes = -1, .compress = "gzip:1"};

Test(hdf5_kill, leaves_what_was_in_a_file_of_the_old_format)
{
    cr_assert(zero(int, kill_everywhere(false, 3, 0, NULL)));
    cr_assert(zero(int, kill_everywhere(false, 3, 512, &packed)));
    /* The names of a group are in two places, and its links in a third. */
    cr_assert(le(int, kill_everywhere(false, MANY, 0, &packed), 1));
}

Test(hdf5_kill, leaves_what_was_in_a_file_of_the_new_format_without_a_mark)
{
    cr_assert(zero(int, kill_everywhere(true, 3, 0, &packed)));
    cr_assert(zero(int, kill_everywhere(true, MANY, 0, NULL)));
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
        cr_assert(check_file(3, n));
    }
    cr_assert(eq(int, status, 1), "after %d changes", n - 1);
    cr_assert(lt(int, 8, n));
}
