/* The agent's name in lists of processes.
 *
 * The kernel shows as a process's command line what lies where its words lay at the beginning
 * (proc(5): arg_start and arg_end). A last byte there that is not NUL tells it that a title took
 * their place and ends at its own NUL. So a title needs no memory but what the words had, and is
 * cut to that; whoever still uses the words must have copied them before.
 *
 * Called by agent.c.
 */
#include "client/ctl/agent/agent.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define FIELDS_BEFORE_ARG_START 45 /* behind the state */

/* From /proc/self/stat, fields 48 and 49. */
static bool find_words(uintptr_t *ret_start, uintptr_t *ret_end)
{
    char text[1024];
    _cleanup_fd_ int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *at = strrchr(text, ')');
    if (!at || strlen(at) < 4)
        return false;
    at += 3; /* at the state's character */
    for (int i = 0; i < FIELDS_BEFORE_ARG_START && at; i++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at && sscanf(at, "%" SCNuPTR " %" SCNuPTR, ret_start, ret_end) == 2 && *ret_start != 0 &&
           *ret_end > *ret_start + 1;
}

void agent_set_title(uint64_t job, unsigned n_jobs)
{
    char title[48];
    uintptr_t start, end;
    if (!find_words(&start, &end))
        return;
    size_t n_bytes = end - start;
    char *words = (char *)start; /* NOLINT(performance-no-int-to-ptr): the kernel's numbers */
    if (n_jobs == 1)
        snprintf(title, sizeof(title), "gpuarrayctl: job %" PRIu64, job);
    else
        snprintf(title, sizeof(title), "gpuarrayctl: %u jobs", n_jobs);
    memset(words, 0, n_bytes);
    memcpy(words, title, strlen(title) < n_bytes - 2 ? strlen(title) : n_bytes - 2);
    words[n_bytes - 1] = '.';
}
