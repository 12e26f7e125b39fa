/* Files that HDF5 outputs go to.
 *
 * An existing file is used where it is. A new one is made without a name, which HDF5 opens by the
 * descriptor that we have of it, and every further output of this process for the same path joins
 * it, so that two datasets of one job end in one file; the first commit names the file, the others
 * are then links to be moved inside it. Where another program or job has made the file meanwhile,
 * what is in ours is copied into that.
 *
 * The list of new files that have no name yet is the only global state, with a lock of its own.
 *
 * Called by hdf5_output.c.
 */
#include "client/formats/hdf5/writing/hdf5_target.h"
#include "client/formats/files/file_output.h"
#include "client/formats/files/file_source.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/writing/hdf5_driver.h"
#include "proto/util.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct hdf5_target {
    struct hdf5_target *next; /* of the new ones */
    unsigned n_refs;
    struct file_output *output; /* of a new file */
    bool has_name, is_synced;
    char *path; /* of an existing file */
    struct stat st;
};

static pthread_mutex_t targets_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hdf5_target *new_targets;

static struct hdf5_target *target_free(struct hdf5_target *target)
{
    file_output_free(target->output);
    free(target->path);
    free(target);
    return NULL;
}

/* Whoever opens a netCDF-4 file by netCDF to write to it finds its links in the order in which they
 * were made, or is refused. */
static hid_t file_properties(const char *path)
{
    static const char *const names[] = {".nc", ".nc4", ".cdf"};
    const char *dot = strrchr(path, '.');
    hid_t properties = hdf5_untimed(H5P_FILE_CREATE);
    bool is_netcdf = false;
    for (size_t i = 0; dot && i < ARRAY_LENGTH(names); i++)
        is_netcdf |= strcasecmp(dot, names[i]) == 0;
    if (properties > 0 && is_netcdf &&
        H5Pset_link_creation_order(properties, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) < 0)
        hdf5_close(&properties);
    return properties;
}

/* An empty HDF5 file in the place of the empty file. */
static int make_file(struct hdf5_target *target, const char *shown, const char *name,
                     struct gad_error *error)
{
    char reason[160];
    HDF5_SCOPE(scope);
    _cleanup_hid_ hid_t properties = file_properties(shown);
    _cleanup_hid_ hid_t access = hdf5_file_access(true);
    hid_t file = H5I_INVALID_HID;
    if (properties > 0 && access > 0)
        file = H5Fcreate(file_output_path(target->output), H5F_ACC_TRUNC, properties, access);
    if (file > 0 && hdf5_driver_close(file) >= 0)
        return 0;
    hdf5_reason(reason, sizeof(reason));
    return error_set(error, file > 0 ? hdf5_driver_failure() : GAD_IO_ERROR, name,
                     "'%.120s' cannot be made by HDF5: %.160s", shown, reason);
}

static struct hdf5_target *find_new(const struct file_output *output)
{
    for (struct hdf5_target *target = new_targets; target; target = target->next)
        if (!target->has_name && file_output_is_for(target->output, output))
            return target;
    return NULL;
}

/* The list's lock is held. */
static int get_new(const char *path, const char *name, struct hdf5_target **ret_target,
                   struct gad_error *error)
{
    struct file_output *output;
    int r = file_output_new(path, name, &output, error);
    if (r)
        return r;
    struct hdf5_target *target = find_new(output);
    if (target) {
        file_output_free(output);
        target->n_refs++;
        *ret_target = target;
        return 0;
    }
    target = calloc(1, sizeof(*target));
    if (!target) {
        file_output_free(output);
        return error_from_errno(error, ENOMEM, name, path);
    }
    target->n_refs = 1;
    target->output = output;
    r = make_file(target, path, name, error);
    if (r == 0 && fstat(file_output_fd(output), &target->st) < 0)
        r = file_path_error(error, errno, path, name);
    if (r) {
        target_free(target);
        return r;
    }
    target->next = new_targets;
    new_targets = target;
    *ret_target = target;
    return 0;
}

static int get_existing(const char *path, const char *name, struct hdf5_target **ret_target,
                        int *ret_fd, struct gad_error *error)
{
    _cleanup_fd_ int fd = -1;
    struct hdf5_target *target = calloc(1, sizeof(*target));
    if (!target)
        return error_from_errno(error, ENOMEM, name, path);
    target->n_refs = 1;
    target->has_name = true;
    int r = file_source_open(path, true, name, &fd, &target->st, error);
    if (r == 0 && !(target->path = realpath(path, NULL)))
        r = file_path_error(error, errno, path, name);
    if (r) {
        target_free(target);
        return r;
    }
    *ret_target = target;
    *ret_fd = steal_fd(&fd);
    return 0;
}

int hdf5_target_get(const char *path, const char *name, struct hdf5_target **ret_target,
                    int *ret_fd, struct gad_error *error)
{
    struct stat st;
    if (stat(path, &st) == 0)
        return get_existing(path, name, ret_target, ret_fd, error);
    if (errno != ENOENT)
        return file_path_error(error, errno, path, name);
    struct hdf5_target *target = NULL;
    pthread_mutex_lock(&targets_lock);
    int r = get_new(path, name, &target, error);
    pthread_mutex_unlock(&targets_lock);
    if (r)
        return r;
    int fd = open(file_output_path(target->output), O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        r = file_path_error(error, errno, path, name);
        hdf5_target_unref(target);
        return r;
    }
    *ret_target = target;
    *ret_fd = fd;
    return 0;
}

struct hdf5_target *hdf5_target_unref(struct hdf5_target *target)
{
    if (!target)
        return NULL;
    pthread_mutex_lock(&targets_lock);
    bool is_last = --target->n_refs == 0;
    for (struct hdf5_target **at = &new_targets; is_last && *at; at = &(*at)->next) {
        if (*at == target) {
            *at = target->next;
            break;
        }
    }
    pthread_mutex_unlock(&targets_lock);
    return is_last ? target_free(target) : NULL;
}

const char *hdf5_target_path(const struct hdf5_target *target)
{
    return target->output ? file_output_path(target->output) : target->path;
}

const struct stat *hdf5_target_stat(const struct hdf5_target *target)
{
    return &target->st;
}

bool hdf5_target_is_temporary(const struct hdf5_target *target)
{
    pthread_mutex_lock(&targets_lock);
    bool is_temporary = !target->has_name && target->n_refs == 1;
    pthread_mutex_unlock(&targets_lock);
    return is_temporary;
}

void hdf5_target_sync(struct hdf5_target *target)
{
    pthread_mutex_lock(&targets_lock);
    target->is_synced = true;
    pthread_mutex_unlock(&targets_lock);
}

static int sync_file(const char *path, const char *name, struct gad_error *error)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? file_path_error(error, errno, path, name) : 0;
}

int hdf5_target_other(struct hdf5_target *target, const char *name, struct hdf5_target **ret_other,
                      struct gad_error *error)
{
    _cleanup_fd_ int fd = -1;
    *ret_other = NULL;
    pthread_mutex_lock(&targets_lock);
    bool is_new = !target->has_name;
    pthread_mutex_unlock(&targets_lock);
    if (!is_new || file_output_open_current(target->output, &fd) < 0)
        return 0;
    close_fd(&fd);
    int r = get_existing(file_output_target(target->output), name, ret_other, &fd, error);
    if (r == 0)
        (*ret_other)->is_synced = target->is_synced;
    return r;
}

int hdf5_target_commit(struct hdf5_target *target, const char *name, struct gad_error *error)
{
    int r = 0;
    pthread_mutex_lock(&targets_lock);
    if (target->is_synced && target->output)
        file_output_sync(target->output);
    if (!target->has_name)
        r = file_output_commit(target->output, true, name, error);
    else if (target->is_synced)
        r = sync_file(hdf5_target_path(target), name, error);
    if (r == 0)
        target->has_name = true;
    pthread_mutex_unlock(&targets_lock);
    return r;
}
