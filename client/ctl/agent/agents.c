/* The registry's files.
 *
 *     jobs/17          the entry of the job whose number was 17 when it was given
 *     jobs/.17.4711    on its way to become that, by process 4711
 *
 * A file is written whole beside its place and renamed, so a reader sees the old text or the new
 * one, whoever is killed when. Nobody holds locks: an agent writes its own entry alone, and whether
 * it lives is asked of the kernel (pid and the time when the process began). Claiming a number that
 * has no file is a link(), which fails when another process was faster.
 *
 * Entries of jobs that are over stay for a day, at most MAX_KEPT of them; claims sweep now and
 * then.
 *
 * Called by agent_task.c, which writes, and by numbers.c, which reads.
 */
#include "client/ctl/agent/agents.h"
#include "client/ctl/agent/agent.h"
#include "client/process.h"
#include "proto/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define KEPT_S         86400
#define TEMPORARY_S    60
#define MAX_KEPT       4096u
#define FILES_A_CLAIM  64u /* of the registry that a claim looks at, on an average */
#define ANSWER_MS      5000
#define MAX_FILE_BYTES 8192

bool agent_is_alive(const struct agent_entry *entry)
{
    return entry->pid > 0 && entry->pid_start != 0 && process_start(entry->pid) == entry->pid_start;
}

static bool terminate(const struct agent_entry *entry)
{
    /* The descriptor stands for one process: what is asked after it was opened is about that. */
    _cleanup_fd_ int fd = (int)syscall(SYS_pidfd_open, entry->pid, 0);
    if (!agent_is_alive(entry))
        return false;
    if (fd < 0)
        return errno == ENOSYS && kill(entry->pid, SIGTERM) == 0;
    return syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) == 0;
}

bool agent_cancel(const struct agent_entry *entry)
{
    struct agent_order order = {.kind = ORDER_CANCEL, .job = entry->first};
    if (!entry->agent[0])
        return terminate(entry);
    _cleanup_fd_ int fd = agent_place_connect_path(entry->agent);
    return fd >= 0 && agent_order_send(fd, &order) && agent_hear_begun(fd, ANSWER_MS);
}

bool agents_same_socket(const char *a, const char *b)
{
    if (strcmp(a, b) == 0)
        return true;
    _cleanup_free_ char *real_a = realpath(a, NULL), *real_b = realpath(b, NULL);
    return real_a && real_b && strcmp(real_a, real_b) == 0;
}

/* Reading -------------------------------------------------------------------------------------- */

static bool read_entry(const char *folder, const char *name, struct agent_entry *ret)
{
    char path[AGENTS_PATH_SIZE + NAME_MAX + 2], text[MAX_FILE_BYTES];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    return agent_entry_read(text, ret);
}

static bool add_folder(const char *folder, struct agent_entry **entries, size_t *n)
{
    DIR *directory = opendir(folder);
    if (!directory)
        return true;
    bool has_room = true;
    for (struct dirent *d; has_room && (d = readdir(directory));) {
        struct agent_entry entry;
        if (d->d_name[0] == '.' || !read_entry(folder, d->d_name, &entry))
            continue;
        struct agent_entry *larger = realloc(*entries, (*n + 1) * sizeof(entry));
        has_room = larger != NULL;
        if (!has_room)
            continue;
        *entries = larger;
        larger[(*n)++] = entry;
    }
    closedir(directory);
    return has_room;
}

struct agent_entry *agents_list(size_t *ret_n)
{
    struct agent_entry *entries = NULL;
    char folder[AGENTS_PATH_SIZE];
    *ret_n = 0;
    for (unsigned i = 0; i < AGENTS_N_FOLDERS; i++)
        if (agents_folder(i, false, folder) && !add_folder(folder, &entries, ret_n))
            break;
    return entries;
}

bool agents_find(uint64_t number, const char *socket, struct agent_entry *ret)
{
    char folder[AGENTS_PATH_SIZE], name[24];
    snprintf(name, sizeof(name), "%llu", (unsigned long long)number);
    for (unsigned i = 0; i < AGENTS_N_FOLDERS; i++)
        if (agents_folder(i, false, folder) && read_entry(folder, name, ret) &&
            (!socket || agents_same_socket(ret->socket, socket)))
            return true;
    size_t n;
    bool is_found = false;
    _cleanup_free_ struct agent_entry *entries = agents_list(&n);
    for (size_t i = 0; i < n && !is_found; i++) {
        is_found = entries[i].present == number && !entries[i].has_ended &&
                   (!socket || agents_same_socket(entries[i].socket, socket));
        *ret = entries[i];
    }
    return is_found;
}

/* Writing -------------------------------------------------------------------------------------- */

static bool folder_for_writing(char ret_path[AGENTS_PATH_SIZE])
{
    for (unsigned i = 0; i < AGENTS_N_FOLDERS; i++)
        if (agents_folder(i, true, ret_path))
            return true;
    return false;
}

static bool write_text(int fd, const char *text)
{
    size_t n_bytes = strlen(text);
    return write(fd, text, n_bytes) == (ssize_t)n_bytes;
}

/* The entry under a temporary name; false: nothing is left of it. */
static bool write_temporary(const char *folder, const struct agent_entry *entry, char *ret_path,
                            size_t n_path_bytes)
{
    _cleanup_free_ char *text = agent_entry_write(entry);
    snprintf(ret_path, n_path_bytes, "%s/.%llu.%d", folder, (unsigned long long)entry->first,
             (int)getpid());
    unlink(ret_path); /* of an earlier process with our pid */
    _cleanup_fd_ int fd =
        text ? open(ret_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return false;
    if (write_text(fd, text))
        return true;
    unlink(ret_path);
    return false;
}

static void entry_path(const char *folder, const struct agent_entry *entry, char *ret_path,
                       size_t n_bytes)
{
    snprintf(ret_path, n_bytes, "%s/%llu", folder, (unsigned long long)entry->first);
}

static bool file_entry(const struct agent_entry *entry, bool is_new)
{
    char folder[AGENTS_PATH_SIZE], temporary[AGENTS_PATH_SIZE + 64], path[AGENTS_PATH_SIZE + 64];
    struct agent_entry other;
    if (!folder_for_writing(folder))
        return true;
    entry_path(folder, entry, path, sizeof(path));
    bool is_written = write_temporary(folder, entry, temporary, sizeof(temporary));
    if (!is_written && !is_new) {
        unlink(path); /* makes room; no word of the job is better than an old one */
        is_written = write_temporary(folder, entry, temporary, sizeof(temporary));
    }
    if (!is_written)
        return true;
    bool is_ours = true;
    if (is_new && link(temporary, path) == 0) {
        unlink(temporary);
        return true;
    }
    if (is_new && errno == EEXIST && agents_find(entry->first, NULL, &other))
        is_ours = other.has_ended || !agent_is_alive(&other);
    if (!is_ours || rename(temporary, path))
        unlink(temporary);
    return is_ours;
}

struct old_file {
    time_t changed;
    char name[24];
};

static int compare_old_files(const void *a, const void *b)
{
    const struct old_file *x = a, *y = b;
    return (x->changed > y->changed) - (x->changed < y->changed);
}

/* Looks at the folder's files once; those that might go, oldest first. */
static size_t find_old(int folder_fd, DIR *directory, struct old_file **ret)
{
    struct old_file *files = NULL;
    size_t n = 0;
    time_t now = time(NULL);
    for (struct dirent *d; (d = readdir(directory));) {
        struct stat st;
        if (fstatat(folder_fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
            continue;
        if (d->d_name[0] == '.') {
            if (now - st.st_mtime > TEMPORARY_S)
                unlinkat(folder_fd, d->d_name, 0);
            continue;
        }
        struct old_file *larger = realloc(files, (n + 1) * sizeof(*files));
        if (!larger)
            break;
        files = larger;
        files[n].changed = st.st_mtime;
        snprintf(files[n].name, sizeof(files[n].name), "%.23s", d->d_name);
        n++;
    }
    if (n > 0)
        qsort(files, n, sizeof(*files), compare_old_files);
    *ret = files;
    return n;
}

/* Returns how many files it has looked at. */
static size_t sweep(const char *folder)
{
    DIR *directory = opendir(folder);
    if (!directory)
        return 0;
    _cleanup_free_ struct old_file *files = NULL;
    size_t n = find_old(dirfd(directory), directory, &files);
    time_t now = time(NULL);
    for (size_t i = 0; i < n; i++) {
        struct agent_entry entry;
        bool is_old = now - files[i].changed > KEPT_S || n - i > MAX_KEPT;
        if (!is_old)
            break;
        if (!read_entry(folder, files[i].name, &entry) || entry.has_ended ||
            !agent_is_alive(&entry))
            unlinkat(dirfd(directory), files[i].name, 0);
    }
    closedir(directory);
    return n;
}

bool agents_claim(const struct agent_entry *entry)
{
    static size_t n_skipped; /* an agent has one thread */
    char folder[AGENTS_PATH_SIZE];
    if (n_skipped > 0)
        n_skipped--;
    else if (folder_for_writing(folder))
        n_skipped = sweep(folder) / FILES_A_CLAIM;
    return file_entry(entry, true);
}

void agents_update(const struct agent_entry *entry)
{
    (void)file_entry(entry, false);
}

void agents_forget(const struct agent_entry *entry)
{
    char folder[AGENTS_PATH_SIZE], path[AGENTS_PATH_SIZE + 64];
    if (!folder_for_writing(folder))
        return;
    entry_path(folder, entry, path, sizeof(path));
    unlink(path);
}
