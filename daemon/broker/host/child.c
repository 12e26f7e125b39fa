/* Child processes on libuv, for the worker's supervision (worker.c). uv_spawn() reports a failing
 * exec in its return value and resets signal masks and dispositions in the child. The child gets a
 * session of its own: a Ctrl-C on our terminal is for us, and we tell it to leave when we are
 * ready.
 */
#include "daemon/broker/loop.h"
#include "proto/util.h"

#include <uv.h>

#define MAX_CHILD_FDS 4

uv_loop_t *loop_uv(struct loop *loop);

struct child {
    uv_process_t handle;
    bool has_exited;
    exit_func func; /* NULL: closed */
    void *userdata;
};

static void on_child_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_exit_status(uv_process_t *handle, int64_t exit_status, int term_signal)
{
    struct child *child = handle->data;
    child->has_exited = true;
    if (child->func)
        child->func(child->userdata, (int)exit_status, term_signal);
    else
        uv_close((uv_handle_t *)handle, on_child_closed);
}

int child_start(struct loop *loop, char *const *argv, const int *fds, unsigned n_fds,
                exit_func func, void *userdata, struct child **ret_child)
{
    uv_stdio_container_t stdio[3 + MAX_CHILD_FDS] = {
        {.flags = UV_IGNORE},
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
    };
    if (n_fds > MAX_CHILD_FDS)
        return -EINVAL;
    for (unsigned i = 0; i < n_fds; i++)
        stdio[3 + i] = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = fds[i]};

    struct child *child = calloc(1, sizeof(*child));
    if (!child)
        return -ENOMEM;
    child->handle.data = child;
    child->func = func;
    child->userdata = userdata;
    uv_process_options_t options = {
        .exit_cb = on_exit_status,
        .file = argv[0],
        .args = (char **)argv,
        .flags = UV_PROCESS_DETACHED,
        .stdio_count = (int)(3 + n_fds),
        .stdio = stdio,
    };
    int r = uv_spawn(loop_uv(loop), &child->handle, &options);
    if (r < 0) {
        child->func = NULL;
        uv_close((uv_handle_t *)&child->handle, on_child_closed);
        return r;
    }
    *ret_child = child;
    return 0;
}

pid_t child_pid(const struct child *child)
{
    return child->handle.pid;
}

void child_kill(struct child *child, int signal_number)
{
    if (!child->has_exited)
        uv_process_kill(&child->handle, signal_number);
}

struct child *child_close(struct child *child)
{
    if (child) {
        child->func = NULL;
        if (child->has_exited) /* else it is still to be waited for */
            uv_close((uv_handle_t *)&child->handle, on_child_closed);
    }
    return NULL;
}
