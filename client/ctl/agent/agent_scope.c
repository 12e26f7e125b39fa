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
 * The environment names the descriptors of the order and of the private directory, and is cleaned
 * as soon as it was read.
 *
 * Called by submit.c.
 */
#include "client/ctl/agent/agent.h"
#include "proto/util.h"

#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>

#define VARIABLE      "GPUARRAYD_AGENT"         /* "ORDER,FOLDER,KEY": two descriptors */
#define LINGER_FOLDER "/var/lib/systemd/linger" /* of systemd-logind: a file for each user */

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

bool agent_scope_is_reachable(void)
{
    char path[PATH_MAX];
    return is_lingering() && find_manager(path, sizeof(path)) && find_program(path, sizeof(path));
}

void agent_scope_exec(int order_fd, const struct agent_place *place)
{
    char directory[PATH_MAX], program[PATH_MAX], self[PATH_MAX], text[64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0 || !find_manager(directory, sizeof(directory)) ||
        !find_program(program, sizeof(program)))
        return;
    self[n] = '\0';
    agent_detach(order_fd, place->folder_fd);
    snprintf(text, sizeof(text), "%d,%d,%s", order_fd, place->folder_fd, place->key);
    if (fcntl(order_fd, F_SETFD, 0) ||
        (place->folder_fd >= 0 && fcntl(place->folder_fd, F_SETFD, 0)) ||
        setenv(VARIABLE, text, 1) || setenv("XDG_RUNTIME_DIR", directory, 1))
        return;
    char *const words[] = {program,           (char *)"--user",
                           (char *)"--scope", (char *)"--collect",
                           (char *)"--quiet", (char *)"--description=jobs of gpuarrayctl submit",
                           (char *)"--",      self,
                           (char *)"submit",  NULL};
    execv(program, words);
}

bool agent_scope_inherit(int *ret_order_fd, struct agent_place *ret_place)
{
    const char *text = secure_getenv(VARIABLE);
    if (!text ||
        sscanf(text, "%d,%d,%16s", ret_order_fd, &ret_place->folder_fd, ret_place->key) != 3)
        return false;
    unsetenv(VARIABLE);
    fcntl(*ret_order_fd, F_SETFD, FD_CLOEXEC);
    if (ret_place->folder_fd >= 0)
        fcntl(ret_place->folder_fd, F_SETFD, FD_CLOEXEC);
    return true;
}
