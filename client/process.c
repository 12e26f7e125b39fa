/* Processes, from /proc/PID/stat. Called by whoever finds something that a process has left. */
#include "client/process.h"
#include "proto/util.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* ret_state 0: it cannot be seen. */
static uint64_t look_at(pid_t pid, char *ret_state)
{
    char path[48], text[1024];
    unsigned long long start;
    *ret_state = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *after_name = strrchr(text, ')'); /* a name may hold anything else */
    if (!after_name ||
        sscanf(after_name,
               ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               ret_state, &start) != 2) {
        *ret_state = 0;
        return 0;
    }
    return start;
}

static bool is_over(char state)
{
    return state == 'Z' || state == 'X';
}

uint64_t process_start(pid_t pid)
{
    char state;
    uint64_t start = look_at(pid, &state);
    return is_over(state) ? 0 : start;
}

bool process_has_ended(pid_t pid, uint64_t start)
{
    char state;
    uint64_t seen = look_at(pid, &state);
    if (state == 0)
        return kill(pid, 0) < 0 && errno == ESRCH;
    return is_over(state) || seen != start;
}
