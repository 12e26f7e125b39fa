/* Out of the login's reach.
 *
 * A process in a session of its own outlives its login, except where systemd-logind runs with
 * KillUserProcesses=yes. A user who lingers (loginctl enable-linger) has a service manager that
 * stays, and what lives in a scope of that manager stays with it in either case. Without lingering
 * the manager ends with the user's last login and takes its scopes along, so then a session is
 * better than a scope.
 *
 *     submit --fork--> setsid() --exec--> systemd-run --user --scope --exec--> gpuarrayctl submit
 *                                              | no manager answers                  agent_run()
 *                                              '-> ends; submit hears nothing and forks an agent
 *
 * The words of the command line do not travel on systemd-run's, which gives meaning to '$', but in
 * a memfd, one NUL behind each. The environment names that and the descriptor of the report, and
 * is cleaned as soon as it was read.
 *
 * Called by submit.c.
 */
#include "client/ctl/agent/agent.h"
#include "proto/util.h"

#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define VARIABLE        "GPUARRAYD_AGENT"         /* "REPORT,WORDS": two descriptors */
#define LINGER_FOLDER   "/var/lib/systemd/linger" /* of systemd-logind: a file for each user */
#define MAX_WORDS_BYTES (4 << 20) /* more than the kernel allows on a command line */

static bool is_socket(const char *directory, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof(path), "%s/%s", directory, name);
    return n > 0 && (size_t)n < sizeof(path) && stat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
           st.st_uid == geteuid();
}

/* The runtime directory with the manager's sockets in it. */
static bool find_manager(char *ret_directory, size_t n_bytes)
{
    const char *given = secure_getenv("XDG_RUNTIME_DIR");
    if (given && given[0])
        snprintf(ret_directory, n_bytes, "%s", given);
    else
        snprintf(ret_directory, n_bytes, "/run/user/%u", geteuid());
    return is_socket(ret_directory, "systemd/private") || is_socket(ret_directory, "bus");
}

static bool find_program(char *ret_path, size_t n_bytes)
{
    const char *list = secure_getenv("PATH");
    for (list = list ? list : "/usr/bin:/bin"; *list; list += *list == ':') {
        size_t n = strcspn(list, ":");
        int length = snprintf(ret_path, n_bytes, "%.*s/systemd-run", (int)n, list);
        if (n > 0 && length > 0 && (size_t)length < n_bytes && access(ret_path, X_OK) == 0)
            return true;
        list += n;
    }
    return false;
}

static bool is_lingering(void)
{
    char path[PATH_MAX];
    const struct passwd *user = getpwuid(geteuid());
    if (!user)
        return false;
    int n = snprintf(path, sizeof(path), LINGER_FOLDER "/%s", user->pw_name);
    return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0;
}

bool scope_is_reachable(void)
{
    char path[PATH_MAX];
    return is_lingering() && find_manager(path, sizeof(path)) && find_program(path, sizeof(path));
}

static int put_words(int argc, char *const *argv)
{
    int low = memfd_create("gpuarrayctl-words", 0);
    int fd = low < 0 ? -1 : fcntl(low, F_DUPFD, 3); /* lives through exec */
    close_fd(&low);
    for (int i = 0; i < argc && fd >= 0; i++) {
        size_t n_bytes = strlen(argv[i]) + 1;
        if (write(fd, argv[i], n_bytes) != (ssize_t)n_bytes) {
            close(fd);
            return -1;
        }
    }
    return fd;
}

void scope_exec(int argc, char *const *argv, int report_fd)
{
    char directory[PATH_MAX], program[PATH_MAX], self[PATH_MAX], fds[32];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    int words_fd = put_words(argc, argv);
    if (n <= 0 || words_fd < 0 || !find_manager(directory, sizeof(directory)) ||
        !find_program(program, sizeof(program)))
        return;
    self[n] = '\0';
    agent_detach(report_fd, words_fd);
    snprintf(fds, sizeof(fds), "%d,%d", report_fd, words_fd);
    if (fcntl(report_fd, F_SETFD, 0) || setenv(VARIABLE, fds, 1) ||
        setenv("XDG_RUNTIME_DIR", directory, 1))
        return;
    char *const words[] = {program,           (char *)"--user",
                           (char *)"--scope", (char *)"--collect",
                           (char *)"--quiet", (char *)"--description=a job of gpuarrayctl submit",
                           (char *)"--",      self,
                           (char *)"submit",  NULL};
    execv(program, words);
}

static char **split_words(char *text, size_t n_bytes, int *ret_argc)
{
    int argc = 0;
    for (size_t i = 0; i < n_bytes; i++)
        argc += text[i] == '\0';
    char **argv = calloc((size_t)argc + 1, sizeof(*argv));
    for (int i = 0; argv && i < argc; i++) {
        argv[i] = text;
        text += strlen(text) + 1;
    }
    *ret_argc = argc;
    return argv;
}

/* All of the file; NULL where that is no list of words. */
static char *read_words(int fd, size_t *ret_n_bytes)
{
    struct stat st;
    if (fstat(fd, &st) || st.st_size <= 0 || st.st_size > MAX_WORDS_BYTES)
        return NULL;
    char *text = malloc((size_t)st.st_size);
    if (text && pread(fd, text, (size_t)st.st_size, 0) == st.st_size &&
        text[st.st_size - 1] == '\0') {
        *ret_n_bytes = (size_t)st.st_size;
        return text;
    }
    free(text);
    return NULL;
}

bool scope_inherit(int *ret_argc, char ***ret_argv, int *ret_report_fd)
{
    const char *fds = secure_getenv(VARIABLE);
    int report_fd, words_fd;
    size_t n_bytes;
    if (!fds || sscanf(fds, "%d,%d", &report_fd, &words_fd) != 2)
        return false;
    unsetenv(VARIABLE);
    char *text = read_words(words_fd, &n_bytes);
    if (!text)
        return false;
    char **argv = split_words(text, n_bytes, ret_argc);
    if (!argv) {
        free(text);
        return false;
    }
    close(words_fd);
    fcntl(report_fd, F_SETFD, FD_CLOEXEC);
    *ret_argv = argv;
    *ret_report_fd = report_fd;
    return true;
}
