/* The service manager: readiness, status, the watchdog, a socket that it listens on for us.
 *
 * sd_notify() waits while the manager's socket is full, and the loop must not; so it is called in a
 * thread of the loop's, one message at a time and in order:
 *
 *     notifier_send --> queue (MAX_WAITING) --> loop_work: sd_notify --> the next
 *
 * A message that is the last one waiting is not queued again (a manager that stood still wants no
 * heap of watchdog messages); what finds no room all the same is dropped. The watchdog is fed at
 * half its time by a deadline of the loop: a loop that does not turn feeds nobody.
 *
 * Called by main.c, broker.c and reload.c.
 */
#define LOG_TOPIC "notify"
#include "daemon/broker/host/notify.h"
#include "daemon/broker/list.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/loop.h"
#include "proto/util.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#ifdef GAD_HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#define MAX_WAITING  8u
#define MESSAGE_SIZE 256

struct notifier {
    struct loop *loop;
    bool is_busy; /* messages[first] is being sent */
    char messages[MAX_WAITING][MESSAGE_SIZE];
    unsigned first, n;
    char status[MESSAGE_SIZE]; /* the last one */
    uint64_t watchdog_ns;      /* 0: none */
    struct deadline watchdog;
    int result;
};

#ifdef GAD_HAVE_SYSTEMD

static bool is_wanted(void)
{
    return getenv("NOTIFY_SOCKET") != NULL;
}

static int send_message(const char *message)
{
    return sd_notify(0, message);
}

static uint64_t watchdog_time_ns(void)
{
    uint64_t usec;
    return sd_watchdog_enabled(0, &usec) > 0 ? usec * 1000 : 0;
}

static void free_names(char **names)
{
    for (char **name = names; name && *name; name++)
        free(*name);
    free(names);
}

static int check_handed_over(int n, char **names)
{
    if (n == 1 && sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_STREAM, 1, NULL, 0) > 0)
        return 0;
    log_error(NULL, "expected one listening stream socket of the Unix domain, found %s",
              n == 1 ? "something else" : "several descriptors");
    for (int i = 0; i < n; i++) {
        log_error(NULL, "descriptor %d is '%s'", SD_LISTEN_FDS_START + i, names ? names[i] : "?");
        close(SD_LISTEN_FDS_START + i);
    }
    return -EINVAL;
}

static int take_first(int *ret_fd)
{
    char **names = NULL;
    int n = sd_listen_fds_with_names(1, &names);
    int r = n > 0 ? check_handed_over(n, names) : n;
    if (n < 0) {
        log_error(NULL, "what LISTEN_FDS and LISTEN_FDNAMES say was not handed over: %s",
                  strerror(-n));
    } else if (n > 0 && r == 0) {
        *ret_fd = SD_LISTEN_FDS_START;
        log_info(NULL, "socket '%s' was handed over", names ? names[0] : "?");
    }
    free_names(names);
    return r;
}

#else

static bool is_wanted(void)
{
    return false;
}

static int send_message(const char *message)
{
    (void)message;
    return 0;
}

static uint64_t watchdog_time_ns(void)
{
    return 0;
}

static int take_first(int *ret_fd)
{
    (void)ret_fd;
    return 0;
}

#endif

int notify_take_socket(int *ret_fd, char *path, size_t n_bytes)
{
    struct sockaddr_un address = {0};
    socklen_t length = sizeof(address) - 1;
    *ret_fd = -1;
    int r = take_first(ret_fd);
    if (r < 0 || *ret_fd < 0)
        return r;
    fcntl(*ret_fd, F_SETFL, fcntl(*ret_fd, F_GETFL) | O_NONBLOCK);
    if (getsockname(*ret_fd, (struct sockaddr *)&address, &length) == 0 && address.sun_path[0])
        snprintf(path, n_bytes, "%s", address.sun_path);
    return 0;
}

/* Messages ------------------------------------------------------------------------------------ */

static void send_next(struct notifier *n);

static char *message_at(struct notifier *n, unsigned i)
{
    return n->messages[(n->first + i) % MAX_WAITING];
}

/* In a thread. */
static void on_work(void *userdata)
{
    struct notifier *n = userdata;
    n->result = send_message(message_at(n, 0));
}

static void on_sent(void *userdata)
{
    struct notifier *n = userdata;
    n->is_busy = false;
    if (n->result < 0)
        log_warn(NULL, "the service manager cannot be told: %s", strerror(-n->result));
    n->first = (n->first + 1) % MAX_WAITING;
    n->n--;
    send_next(n);
}

static void send_next(struct notifier *n)
{
    if (n->is_busy || n->n == 0)
        return;
    int r = loop_work(n->loop, on_work, on_sent, n);
    if (r < 0) {
        log_error(NULL, "no thread to tell the service manager: %s", strerror(-r));
        n->n = 0;
        return;
    }
    n->is_busy = true;
}

static void send_text(struct notifier *n, const char *format, va_list ap)
{
    char text[MESSAGE_SIZE];
    vsnprintf(text, sizeof(text), format, ap);
    if (n->n > 1 && strcmp(message_at(n, n->n - 1), text) == 0)
        return; /* the first one is under way: it does not count */
    if (n->n == MAX_WAITING) {
        log_warn(NULL, "the service manager does not read: dropped '%s'", text);
        return;
    }
    memcpy(message_at(n, n->n), text, sizeof(text));
    n->n++;
    send_next(n);
}

void notifier_send(struct notifier *n, const char *format, ...)
{
    va_list ap;
    if (!n)
        return;
    va_start(ap, format);
    send_text(n, format, ap);
    va_end(ap);
}

void notifier_status(struct notifier *n, const char *format, ...)
{
    char status[MESSAGE_SIZE - 16];
    va_list ap;
    if (!n)
        return;
    va_start(ap, format);
    vsnprintf(status, sizeof(status), format, ap);
    va_end(ap);
    if (strcmp(status, n->status) == 0)
        return;
    snprintf(n->status, sizeof(n->status), "%s", status);
    notifier_send(n, "STATUS=%s", status);
}

static void on_watchdog(struct deadline *deadline)
{
    struct notifier *n = list_entry(deadline, struct notifier, watchdog);
    notifier_send(n, "WATCHDOG=1");
    deadline_set(loop_deadlines(n->loop), &n->watchdog, loop_now_ns() + n->watchdog_ns / 2,
                 on_watchdog);
}

int notifier_new(struct loop *loop, struct notifier **ret_notifier)
{
    *ret_notifier = NULL;
    if (!is_wanted())
        return 0;
    struct notifier *n = calloc(1, sizeof(*n));
    if (!n)
        return -ENOMEM;
    n->loop = loop;
    n->watchdog_ns = watchdog_time_ns();
    if (n->watchdog_ns > 0)
        on_watchdog(&n->watchdog);
    *ret_notifier = n;
    return 0;
}

struct notifier *notifier_free(struct notifier *n)
{
    if (!n)
        return NULL;
    deadline_clear(loop_deadlines(n->loop), &n->watchdog);
    if (!n->is_busy) /* else its thread still reads from it: the process ends soon */
        free(n);
    return NULL;
}
