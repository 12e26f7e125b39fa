/* Datasets as outputs: into new and existing files, whole or not at all, beside what is there. */
#include "support.h"

#include "client/clock.h"
#include "client/formats/files/file_claim.h"
#include "client/formats/hdf5/hdf5_names.h"
#include "proto/packet.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(hdf5_output, .init = folder_make, .fini = folder_remove);

static const int64_t shape[2] = {30, 40};
static const hsize_t dims[2] = {30, 40};

static int commit(struct gad_array *array)
{
    int r = array->commit(array, &last_error);
    array->is_committed = r == 0;
    return r;
}

static void commit_and_release(struct gad_array *array)
{
    commit_ok(array);
    gad_array_release(array);
}

static struct gad_array *make(const char *spec, bool replace, double first)
{
    struct gad_array *array = NULL;
    int r = format_create(NULL, spec, replace, DTYPE_FLOAT64, 2, shape, false, NULL, &array,
                          &last_error);
    cr_assert(r == 0, "%s", last_error.message);
    double values[1200];
    for (int i = 0; i < 1200; i++)
        values[i] = first + i;
    write_elements(array, values);
    return array;
}

static void make_and_commit(const char *spec, bool replace, double first)
{
    commit_and_release(make(spec, replace, first));
}

static void expect(const char *spec, double first)
{
    struct gad_array *array = open_ok(spec);
    double *values = elements(array);
    for (size_t i = 0; i < n_elements(array); i++)
        cr_assert(values[i] == first + (double)i, "%s: %zu is %g", spec, i, values[i]);
    free(values);
    gad_array_release(array);
}

/* As HDF5 itself sees it. */
static void expect_read(const char *path, const char *dataset, double first)
{
    double values[1200];
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t id = H5Dopen2(file, dataset, H5P_DEFAULT);
    cr_assert(id > 0);
    cr_assert(H5Dread(id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    for (int i = 0; i < 1200; i++)
        cr_assert(values[i] == first + i);
    H5Dclose(id);
    H5Fclose(file);
}

static int count_links(const char *path)
{
    H5G_info_t info;
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    cr_assert(file > 0 && H5Gget_info(file, &info) >= 0);
    H5Fclose(file);
    return (int)info.nlinks;
}

static void put_existing(const char *path, hsize_t user_block)
{
    const hsize_t chunk[2] = {10, 10};
    hid_t file = h5_create(path, user_block), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_deflate(dcpl, 1);
    h5_put(file, "a", H5T_IEEE_F64LE, 2, dims, NULL, 0);
    h5_put(file, "g/b", H5T_IEEE_F64LE, 2, dims, chunk, 0);
    h5_put(file, "p", H5T_IEEE_F64LE, 2, dims, chunk, dcpl);
    H5Pclose(dcpl);
    H5Fclose(file);
}

Test(hdf5_output, a_new_file_appears_with_the_commit)
{
    int n = descriptor_count();
    struct gad_array *array = make("r.h5:/g/h/d", false, 3);
    cr_assert(access("r.h5", F_OK) < 0);
    cr_assert(eq(int, folder_count(), 0)); /* it has no name */
    cr_assert(eq(int, (int)array->access, ACCESS_FILE));
    cr_assert(array->is_writable);
    cr_assert(eq(int, fcntl(array->fd, F_GETFL) & (O_ACCMODE | O_APPEND), O_RDWR));
    commit_and_release(array);
    cr_assert(eq(int, folder_count(), 1));
    cr_assert(eq(int, descriptor_count(), n));
    expect("r.h5:/g/h/d", 3);
    expect_read("r.h5", "/g/h/d", 3);
    cr_assert(eq(int, count_links("r.h5"), 1));
}

Test(hdf5_output, a_new_file_is_gone_without_a_commit)
{
    int n = descriptor_count();
    gad_array_release(make("r.h5:d", false, 3));
    cr_assert(eq(int, folder_count(), 0));
    cr_assert(eq(int, descriptor_count(), n));
}

Test(hdf5_output, several_new_datasets_share_a_file)
{
    cr_assert(symlink("r.h5", "link.h5") == 0);
    struct gad_array *a = make("r.h5:a", false, 1), *b = make("./r.h5:g/b", false, 2);
    struct gad_array *c = make("link.h5:c", false, 3), *d = make("r.h5:d", false, 4);
    commit_ok(b);
    expect("r.h5:g/b", 2);
    gad_array_release(d);
    commit_and_release(a);
    gad_array_release(b);
    commit_and_release(c);
    expect("r.h5:a", 1);
    expect("r.h5:g/b", 2);
    expect("r.h5:c", 3);
    cr_assert(eq(int, count_links("r.h5"), 3));
    cr_assert(eq(int, folder_count(), 2));
}

Test(hdf5_output, one_of_several_may_go_before_any_commit)
{
    struct gad_array *a = make("r.h5:a", false, 1), *b = make("r.h5:b", false, 2);
    gad_array_release(a);
    commit_and_release(b);
    expect("r.h5:b", 2);
    cr_assert(eq(int, count_links("r.h5"), 1));
}

Test(hdf5_output, an_existing_file_keeps_its_other_datasets)
{
    for (hsize_t block = 0; block <= 512; block += 512) {
        put_existing("r.h5", block);
        cr_assert(chmod("r.h5", 0640) == 0);
        struct gad_array *array = make("r.h5:g/new/d", false, 7);
        expect("r.h5:a", 0);
        cr_assert(eq(str, (char *)open_word("r.h5:g/new/d"), "not-found"));
        cr_assert(strstr(last_error.message, ".gpuarrayd") == NULL);
        commit_and_release(array);
        expect("r.h5:g/new/d", 7);
        expect_read("r.h5", "g/new/d", 7);
        expect("r.h5:a", 0);
        expect("r.h5:g/b", 0);
        expect("r.h5:p", 0);
        cr_assert(eq(int, count_links("r.h5"), 3));
        cr_assert(eq(int, folder_count(), 1));
    }
}

Test(hdf5_output, an_existing_file_is_as_before_without_a_commit)
{
    struct stat before, after;
    put_existing("r.h5", 0);
    cr_assert(stat("r.h5", &before) == 0);
    for (int i = 0; i < 3; i++)
        gad_array_release(make("r.h5:d", false, 7));
    cr_assert(eq(int, count_links("r.h5"), 3));
    cr_assert(stat("r.h5", &after) == 0);
    cr_assert(lt(i64, after.st_size, before.st_size + 9600));
    expect("r.h5:a", 0);
}

Test(hdf5_output, an_existing_dataset_is_replaced_only_when_asked)
{
    put_existing("r.h5", 0);
    cr_assert(eq(str, (char *)create_word("r.h5:a", false, DTYPE_BOOL, 2, shape), "exists"));
    cr_assert(eq(str, (char *)create_word("r.h5:g", true, DTYPE_BOOL, 2, shape), "exists"));
    cr_assert(eq(str, (char *)create_word("r.h5:a/x", true, DTYPE_BOOL, 2, shape), "bad-argument"));
    cr_assert(eq(str, (char *)create_word("r.h5:.gpuarrayd-1", true, DTYPE_BOOL, 2, shape),
                 "bad-argument"));
    struct gad_array *array = make("r.h5:g/b", true, 9);
    expect("r.h5:g/b", 0);
    commit_and_release(array);
    expect("r.h5:g/b", 9);
    cr_assert(eq(int, count_links("r.h5"), 3));
}

Test(hdf5_output, what_appeared_meanwhile_stays)
{
    struct gad_array *array = make("r.h5:a", false, 1);
    file_put("r.h5", "of another kind", 15);
    cr_assert(eq(int, commit(array), GAD_BAD_FORMAT));
    gad_array_release(array);
    struct stat st;
    cr_assert(stat("r.h5", &st) == 0 && st.st_size == 15);
    unlink("r.h5");
    array = make("r.h5:a", false, 1);
    put_existing("r.h5", 0);
    cr_assert(eq(int, commit(array), GAD_EXISTS));
    gad_array_release(array);
    expect("r.h5:a", 0);
    cr_assert(eq(int, folder_count(), 1));

    array = make("r.h5:d", false, 1);
    hid_t file = H5Fopen("r.h5", H5F_ACC_RDWR, H5P_DEFAULT);
    h5_put(file, "d", H5T_IEEE_F64LE, 2, dims, NULL, 0);
    H5Fclose(file);
    cr_assert(eq(int, commit(array), GAD_EXISTS));
    gad_array_release(array);
    expect("r.h5:d", 0);
    cr_assert(eq(int, count_links("r.h5"), 4));
}

/* As two jobs that begin before either of them has ended. */
Test(hdf5_output, joins_a_new_file_that_another_has_made_meanwhile)
{
    const int64_t chunks[2] = {7, 40};
    const struct gad_storage storage = {
        .n_chunk_axes = 2, .chunk_shape = chunks, .compress = "lz4", .shuffle = true};
    struct gad_array *packed = NULL;
    double values[1200];
    int n = descriptor_count();
    struct gad_array *plain = make("r.h5:/g/b", true, 1);
    int r = format_create(NULL, "r.h5:p", true, DTYPE_FLOAT64, 2, shape, false, &storage, &packed,
                          &last_error);
    cr_assert(r == 0, "%s", last_error.message);
    for (int i = 0; i < 1200; i++)
        values[i] = 5 + i;
    const int64_t origin[2] = {0, 0};
    cr_assert(eq(int, packed->provider->drain(packed->provider_state, origin, shape, values), 0));
    pid_t child = fork();
    if (child == 0) {
        make_and_commit("s.h5:c", true, 3);
        _exit(rename("s.h5", "r.h5"));
    }
    int status;
    cr_assert(waitpid(child, &status, 0) == child && status == 0);
    commit_ok(plain);
    commit_ok(packed);
    gad_array_release(plain);
    gad_array_release(packed);
    expect("r.h5:c", 3);
    expect("r.h5:g/b", 1);
    expect("r.h5:p", 5);
    expect_read("r.h5", "g/b", 1);
    cr_assert(eq(int, count_links("r.h5"), 3));
    cr_assert(eq(int, folder_count(), 1));
    cr_assert(eq(int, descriptor_count(), n));
}

Test(hdf5_output, may_go_into_the_file_that_is_read)
{
    put_existing("r.h5", 0);
    struct gad_array *a = open_ok("r.h5:a"), *b = open_ok("r.h5:g/b"), *p = open_ok("r.h5:p");
    cr_assert(eq(int, (int)p->access, ACCESS_PROVIDER));
    free(elements_by_blocks(p, 8)); /* HDF5 has the file open for reading now */
    struct gad_array *out = make("r.h5:out", false, 5);
    double *values = elements_by_blocks(p, 8);
    cr_assert(values[1199] == 1199);
    free(values);
    commit_ok(out);
    values = elements_by_blocks(b, 8);
    cr_assert(values[1199] == 1199);
    free(values);
    gad_array_release(a);
    gad_array_release(b);
    gad_array_release(p);
    gad_array_release(out);
    expect("r.h5:out", 5);
}

Test(hdf5_output, a_file_locked_by_another_is_busy)
{
    put_existing("r.h5", 0);
    int fd = open("r.h5", O_RDONLY | O_CLOEXEC);
    cr_assert(flock(fd, LOCK_SH) == 0);
    cr_assert(eq(str, (char *)create_word("r.h5:d", false, DTYPE_BOOL, 2, shape), "busy"));
    cr_assert(flock(fd, LOCK_UN) == 0);
    struct gad_array *array = make("r.h5:d", false, 1);
    commit_and_release(array);
    close(fd);
}

Test(hdf5_output, every_dtype_is_read_back)
{
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        char spec[32];
        snprintf(spec, sizeof(spec), "r.h5:%s", dtype_name((enum dtype)dtype));
        struct gad_array *array = create_ok(spec, (enum dtype)dtype, 2, shape);
        commit_and_release(array);
        array = open_ok(spec);
        cr_assert(eq(int, (int)array->info.dtype, dtype));
        cr_assert(not(array->info.is_swapped));
        cr_assert(eq(i64, array->info.shape[1], 40));
        gad_array_release(array);
    }
}

Test(hdf5_output, no_dimensions_and_no_elements_are_possible)
{
    const int64_t empty[3] = {2, 0, 3};
    struct gad_array *array = create_ok("r.h5:scalar", DTYPE_FLOAT64, 0, NULL);
    const double value = 42;
    write_elements(array, &value);
    commit_and_release(array);
    array = create_ok("r.h5:empty", DTYPE_FLOAT32, 3, empty);
    commit_and_release(array);
    expect("r.h5:scalar", 42);
    array = open_ok("r.h5:empty");
    cr_assert(eq(int, array->info.ndim, 3));
    gad_array_release(array);
}

Test(hdf5_output, links_lead_to_the_real_file)
{
    put_existing("real.h5", 0);
    cr_assert(symlink("real.h5", "r.h5") == 0);
    make_and_commit("r.h5:d", false, 4);
    expect("real.h5:d", 4);
    struct stat st;
    cr_assert(lstat("r.h5", &st) == 0);
    cr_assert(eq(int, (int)(st.st_mode & S_IFMT), S_IFLNK));
}

Test(hdf5_output, groups_of_other_files_are_not_written)
{
    put_existing("other.h5", 0);
    put_existing("r.h5", 0);
    hid_t file = H5Fopen("r.h5", H5F_ACC_RDWR, H5P_DEFAULT);
    cr_assert(H5Lcreate_external("other.h5", "/g", file, "x", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    cr_assert(
        eq(str, (char *)create_word("r.h5:x/d", false, DTYPE_BOOL, 2, shape), "bad-argument"));
    cr_assert(eq(str, (char *)create_word("r.h5:x", true, DTYPE_BOOL, 2, shape), "exists"));
}

Test(hdf5_output, unusable_targets_are_refused)
{
    file_put("text.h5", "text", 4);
    cr_assert(mkdir("d.h5", 0755) == 0);
    cr_assert(eq(str, (char *)create_word("text.h5:d", true, DTYPE_BOOL, 2, shape), "bad-format"));
    cr_assert(eq(str, (char *)create_word("d.h5:d", true, DTYPE_BOOL, 2, shape), "bad-descriptor"));
    cr_assert(eq(str, (char *)create_word("no/r.h5:d", true, DTYPE_BOOL, 2, shape), "not-found"));
    put_existing("ro.h5", 0);
    cr_assert(chmod("ro.h5", 0444) == 0);
    bool was_root = geteuid() == 0;
    drop_root();
    cr_assert(
        eq(str, (char *)create_word("ro.h5:d", true, DTYPE_BOOL, 2, shape), "permission-denied"));
    if (was_root)
        cr_assert(eq(str, (char *)create_word("n.h5:d", true, DTYPE_BOOL, 2, shape),
                     "permission-denied"));
}

Test(hdf5_output, a_lack_of_space_is_told_at_once)
{
    const int64_t huge[1] = {INT64_C(1) << 50}, big[1] = {INT64_MAX / 8};
    put_existing("r.h5", 0);
    cr_assert(eq(str, (char *)create_word("r.h5:d", true, DTYPE_FLOAT64, 1, huge), "no-space"));
    cr_assert(eq(str, (char *)create_word("n.h5:d", true, DTYPE_FLOAT64, 1, huge), "no-space"));
    cr_assert(eq(str, (char *)create_word("n.h5:d", true, DTYPE_FLOAT64, 1, big), "no-space"));
    cr_assert(eq(int, count_links("r.h5"), 3));
    cr_assert(eq(int, folder_count(), 1));
}

Test(hdf5_output, a_small_tmpfs_holds_what_it_can)
{
    const int64_t fits[1] = {400000}, does_not[1] = {2000000};
    mount_small_tmpfs("t");
    cr_assert(eq(str, (char *)create_word("t/a.h5:d", true, DTYPE_INT8, 1, does_not), "no-space"));
    struct gad_array *array = create_ok("t/a.h5:d", DTYPE_INT8, 1, fits);
    commit_and_release(array);
    cr_assert(eq(str, (char *)create_word("t/a.h5:e", true, DTYPE_INT8, 1, does_not), "no-space"));
    cr_assert(eq(int, count_links("t/a.h5"), 1));
    gad_array_release(open_ok("t/a.h5:d"));
    unmount("t");
}

/* What is still being written to --------------------------------------------------------------- */

/* A process hands its new dataset over, as to a daemon, and is killed. Returns the descriptor. */
static int killed_output(const char *spec, uint64_t *ret_offset_bytes)
{
    int ends[2];
    cr_assert(zero(int, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)));
    pid_t pid = fork();
    if (pid == 0) {
        const struct gad_array *array = make(spec, false, 0);
        cr_assert(eq(i64, write(ends[1], &array->offset_bytes, 8), 8));
        cr_assert(eq(i64, packet_send(ends[1], "d", 1, &array->fd, 1, 0), 1));
        raise(SIGKILL);
    }
    cr_assert(eq(i64, read(ends[0], ret_offset_bytes, 8), 8));
    char byte;
    int fd;
    unsigned n_fds;
    cr_assert(eq(i64, packet_receive(ends[0], &byte, 1, &fd, 1, &n_fds, 0), 1));
    cr_assert(eq(uint, n_fds, 1));
    close(ends[0]);
    close(ends[1]);
    waitpid(pid, NULL, 0);
    return fd;
}

/* What the daemon does when it has not heard yet that its client is gone. */
static void write_late(int fd, uint64_t offset_bytes)
{
    double values[1200];
    for (int i = 0; i < 1200; i++)
        values[i] = -1;
    cr_assert(eq(i64, pwrite(fd, values, sizeof(values), (off_t)offset_bytes), sizeof(values)));
}

Test(hdf5_output, takes_no_place_to_which_a_killed_client_s_job_still_writes)
{
    uint64_t offset_bytes;
    put_existing("r.h5", 0);
    int fd = killed_output("r.h5:killed", &offset_bytes);
    cr_assert(eq(int, count_links("r.h5"), 4));
    struct gad_array *array = make("r.h5:d", false, 1);
    write_late(fd, offset_bytes);
    commit_and_release(array);
    make_and_commit("r.h5:e", false, 2);
    write_late(fd, offset_bytes);
    expect("r.h5:a", 0);
    expect("r.h5:d", 1);
    expect("r.h5:e", 2);
    cr_assert(eq(int, count_links("r.h5"), 6), "what is written to stays");
    close(fd);
    make_and_commit("r.h5:f", false, 3);
    cr_assert(eq(int, count_links("r.h5"), 6), "it went, and another one came");
    expect("r.h5:f", 3);
}

Test(hdf5_output, that_is_discarded_keeps_its_place_while_others_may_write_to_it)
{
    put_existing("r.h5", 0);
    struct gad_array *array = make("r.h5:d", false, 1);
    uint64_t offset_bytes = array->offset_bytes;
    int fd = fcntl(array->fd, F_DUPFD_CLOEXEC, 3);
    gad_array_release(array);
    make_and_commit("r.h5:e", false, 2);
    write_late(fd, offset_bytes);
    expect("r.h5:e", 2);
    cr_assert(eq(int, count_links("r.h5"), 5), "what is written to stays");
    close(fd);
    make_and_commit("r.h5:f", false, 3);
    cr_assert(eq(int, count_links("r.h5"), 5), "this process removes what it gave up");
}

static bool do_meet(uint64_t a_bytes, uint64_t b_bytes)
{
    return a_bytes < b_bytes + sizeof(double[1200]) && b_bytes < a_bytes + sizeof(double[1200]);
}

/* A file that gives places again that were freed before it was opened. */
static void put_thrifty(const char *path)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);
    cr_assert(H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_FSM_AGGR, true, 1) >= 0);
    hid_t file = H5Fcreate(path, H5F_ACC_EXCL, fcpl, H5P_DEFAULT);
    cr_assert(file > 0);
    H5Fclose(file);
    H5Pclose(fcpl);
}

static void delete_link(const char *path, const char *name)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    cr_assert(file > 0 && H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    H5Fclose(file);
}

Test(hdf5_output, that_is_committed_claims_nothing_though_it_is_kept)
{
    put_thrifty("r.h5");
    struct gad_array *array = make("r.h5:d", false, 1);
    uint64_t offset_bytes = array->offset_bytes;
    int fd = fcntl(array->fd, F_DUPFD_CLOEXEC, 3);
    commit_ok(array);
    delete_link("r.h5", "d");
    struct gad_array *next = make("r.h5:e", false, 2);
    cr_assert(do_meet(next->offset_bytes, offset_bytes), "HDF5 gives the place again");
    commit_and_release(next);
    gad_array_release(array);
    close(fd);
    expect("r.h5:e", 2);
}

Test(hdf5_output, waits_for_a_place_that_others_have_freed_too_early)
{
    put_thrifty("r.h5");
    struct gad_array *array = make("r.h5:d", false, 1);
    commit_ok(array);
    uint64_t offset_bytes = array->offset_bytes;
    gad_array_release(array);
    int fd = open("r.h5", O_RDWR | O_CLOEXEC);
    cr_assert(zero(int, file_claim(fd, offset_bytes, 9600, "r.h5", "d", &last_error)));
    delete_link("r.h5", "d");
    int64_t deadline = clock_deadline_ms(300);
    pid_t pid = fork(); /* the claim's last holder */
    if (pid == 0) {
        usleep(300000);
        _exit(0);
    }
    close(fd);
    array = make("r.h5:e", false, 2);
    cr_assert(do_meet(array->offset_bytes, offset_bytes));
    cr_assert(eq(i32, clock_left_ms(deadline), 0), "until the claim was gone");
    commit_and_release(array);
    waitpid(pid, NULL, 0);
    expect("r.h5:e", 2);
}

Test(hdf5_output, that_replaces_another_frees_no_place_to_which_somebody_writes)
{
    put_existing("r.h5", 0);
    struct gad_array *array = make("r.h5:d", false, 1);
    commit_ok(array);
    uint64_t offset_bytes = array->offset_bytes;
    gad_array_release(array);
    int fd = open("r.h5", O_RDWR | O_CLOEXEC);
    cr_assert(zero(int, file_claim(fd, offset_bytes, 9600, "r.h5", "d", &last_error)));
    make_and_commit("r.h5:d", true, 2);
    cr_assert(eq(int, count_links("r.h5"), 5), "the old one stays, hidden");
    array = make("r.h5:e", false, 3);
    write_late(fd, offset_bytes);
    commit_and_release(array);
    expect("r.h5:d", 2);
    expect("r.h5:e", 3);
    close(fd);
    make_and_commit("r.h5:f", false, 4);
    cr_assert(eq(int, count_links("r.h5"), 6), "the old one went");
}

Test(hdf5_output, follows_no_links_that_others_have_hidden)
{
    put_existing("r.h5", 0);
    cr_assert(zero(int, mkfifo("pipe.h5", 0600))); /* opening it would wait for ever */
    hid_t file = H5Fopen("r.h5", H5F_ACC_RDWR, H5P_DEFAULT);
    cr_assert(H5Lcreate_external("pipe.h5", "/x", file, ".gpuarrayd-1", 0, 0) >= 0);
    cr_assert(H5Lcreate_soft("/a", file, ".gpuarrayd-2", 0, 0) >= 0);
    cr_assert(H5Lcreate_soft("/nothing", file, ".gpuarrayd-3", 0, 0) >= 0);
    H5Fclose(file);
    make_and_commit("r.h5:d", false, 1);
    cr_assert(eq(int, count_links("r.h5"), 7));
    expect("r.h5:a", 0);
    expect("r.h5:d", 1);
}

Test(hdf5_output, of_several_in_a_new_file_that_go_leave_the_others)
{
    struct gad_array *a = make("r.h5:a", false, 1), *b = make("r.h5:b", false, 2);
    commit_ok(b);
    gad_array_release(a);
    cr_assert(eq(int, count_links("r.h5"), 1));
    gad_array_release(b);
    expect("r.h5:b", 2);
}
