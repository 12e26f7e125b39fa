/* Orders: what one process of the user asks the agent to do.
 *
 *     order -->    one message: kind, number; the working directory and the words as descriptors
 *     <-- 'b'      the agent has it
 *     <-- report   of a submission: the job's number, or why not
 *
 * Both ends are programs of the same file and the same user (see agent_place.c), so structures go
 * as they are. The words of a command line do not travel on one but in a memfd, one NUL behind
 * each.
 *
 * Called by submit.c and numbers.c, which ask, and by agent.c.
 */
#include "client/ctl/agent/agent.h"
#include "proto/util.h"
#include "proto/packet.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_WORDS_BYTES (4 << 20) /* more than the kernel allows on a command line */
#define ORDER_MS        1000
#define ORDER_N_FDS     2

struct order_message {
    uint32_t kind;
    uint64_t job;
};

bool agent_order_send(int fd, const struct agent_order *order)
{
    const struct order_message body = {.kind = order->kind, .job = order->job};
    const int fds[ORDER_N_FDS] = {order->cwd_fd, order->words_fd};
    unsigned n_fds = order->kind == ORDER_SUBMIT ? ORDER_N_FDS : 0;
    return packet_send(fd, &body, sizeof(body), fds, n_fds, 0) == sizeof(body);
}

static bool is_own_user(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

bool agent_order_receive(int fd, struct agent_order *ret)
{
    struct order_message body = {0};
    int fds[ORDER_N_FDS] = {-1, -1};
    unsigned n_fds;
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    *ret = (struct agent_order){.cwd_fd = -1, .words_fd = -1};
    if (!is_own_user(fd) || poll(&polled, 1, ORDER_MS) <= 0)
        return false;
    ssize_t n = packet_receive(fd, &body, sizeof(body), fds, ORDER_N_FDS, &n_fds, MSG_DONTWAIT);
    ret->cwd_fd = fds[0];
    ret->words_fd = fds[1];
    ret->kind = (enum order_kind)body.kind;
    ret->job = body.job;
    bool has_words = ret->cwd_fd >= 0 && ret->words_fd >= 0;
    if (n == (ssize_t)sizeof(body) && (ret->kind == ORDER_SUBMIT) == has_words &&
        ret->kind <= ORDER_CANCEL)
        return true;
    close_fd(&ret->cwd_fd);
    close_fd(&ret->words_fd);
    return false;
}

int agent_words_put(int argc, char *const *argv)
{
    int low = memfd_create("gpuarrayctl-words", MFD_CLOEXEC);
    int fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, 3);
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

bool agent_words_take(int fd_take, int *ret_argc, char ***ret_argv)
{
    size_t n_bytes = 0;
    char *text = read_words(fd_take, &n_bytes);
    int argc = 0;
    close(fd_take);
    for (size_t i = 0; text && i < n_bytes; i++)
        argc += text[i] == '\0';
    char **argv = text ? calloc((size_t)argc + 1, sizeof(*argv)) : NULL;
    if (!argv) {
        free(text);
        return false;
    }
    for (int i = 0; i < argc; i++) {
        argv[i] = text;
        text += strlen(text) + 1;
    }
    *ret_argc = argc;
    *ret_argv = argv;
    return true;
}

bool agent_hear_begun(int fd, int timeout_ms)
{
    char byte;
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    int n;
    do
        n = poll(&polled, 1, timeout_ms);
    while (n < 0 && errno == EINTR);
    return n > 0 && read(fd, &byte, 1) == 1 && byte == AGENT_BEGUN;
}
