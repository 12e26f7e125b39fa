/* The log: formats a line and writes it without ever waiting.
 *
 * The broker's loop must not stop because nobody reads its stderr, so a line that finds no room is
 * dropped and counted; the next line that goes through says how many are missing. O_NONBLOCK
 * belongs to the open file description, which we share with whoever started us, so it is never set
 * on stderr itself:
 *
 *     a socket (the journal)   send() with MSG_DONTWAIT
 *     a pipe or a terminal     opened anew through /proc/self/fd, with O_NONBLOCK
 *     a regular file           written as it is (the offset is shared with the worker)
 *     anything else            written only while poll() says that there is room
 *
 * Lines get an `<n>` prefix when stderr is the journal's stream (JOURNAL_STREAM names its device
 * and inode). Fields stand at the line's end as KEY=VALUE there too: the journal's own protocol
 * would make fields of them, but sd_journal_send() waits while the journal does not read, and a log
 * that is dropped costs less than a loop that stands. What is not printable becomes '?', so that a
 * client's text cannot forge lines, nor change how one is read; what a client says of itself is
 * quoted by who logs it (text_quote), so that it cannot forge fields.
 *
 * A line with a user's number counts against what the user may write, the account's share and
 * a rate (loglimit.c), but for those of the level debug, which somebody asked for. What was left
 * out is told by log_report().
 *
 * Called by every file of the broker, from the loop's thread only.
 */
#include "daemon/broker/host/log.h"
#include "daemon/broker/host/loglimit.h"
#include "proto/text.h"
#include "proto/util.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#define LINE_BYTES 2048
#define TEXT_BYTES 1024 /* of the text: fields always find room behind it */

enum sink { SINK_PLAIN, SINK_SOCKET, SINK_POLLED };

static struct {
    int fd;
    int own_fd; /* a description of our own, or -1 */
    enum sink sink;
    bool has_priority;
    bool is_torn; /* the last line went out in part: a disk got full within it */
    enum log_level level;
    uint64_t n_dropped, n_unreported;
    struct log_limit limit;
    log_account *account;
    void *account_userdata;
} state = {.fd = STDERR_FILENO, .own_fd = -1, .sink = SINK_POLLED, .level = LOG_LEVEL_WARN};

static const struct {
    const char *name;
    int priority; /* of syslog */
} levels[] = {
    [LOG_LEVEL_ERROR] = {"error", 3},
    [LOG_LEVEL_WARN] = {"warn", 4},
    [LOG_LEVEL_INFO] = {"info", 6},
    [LOG_LEVEL_DEBUG] = {"debug", 7},
};

bool log_level_from_name(const char *name, enum log_level *ret_level)
{
    for (unsigned i = 0; i < ARRAY_LENGTH(levels); i++) {
        if (strcmp(name, levels[i].name) == 0) {
            *ret_level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

static bool is_journal(const struct stat *st)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && device == st->st_dev &&
           inode == st->st_ino;
}

static int reopen_nonblocking(int fd)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void log_open(int fd, enum log_level level)
{
    log_close();
    state.limit = (struct log_limit){.n_left_out = 0};
    state.fd = fd;
    state.level = level;

    struct stat st;
    if (fstat(fd, &st) < 0)
        return;
    state.has_priority = is_journal(&st);
    if (S_ISSOCK(st.st_mode)) {
        state.sink = SINK_SOCKET;
    } else if (S_ISREG(st.st_mode)) {
        state.sink = SINK_PLAIN;
    } else {
        state.own_fd = reopen_nonblocking(fd);
        state.sink = state.own_fd >= 0 ? SINK_PLAIN : SINK_POLLED;
    }
}

void log_close(void)
{
    log_report();
    close_fd(&state.own_fd);
    state.fd = STDERR_FILENO;
    state.sink = SINK_POLLED;
    state.has_priority = state.is_torn = false;
}

void log_set_account(log_account *func, void *userdata)
{
    state.account = func;
    state.account_userdata = userdata;
}

void log_set_level(enum log_level level)
{
    state.level = level;
}

bool log_is_on(enum log_level level)
{
    return level <= state.level;
}

uint64_t log_n_dropped(void)
{
    return state.n_dropped;
}

static void append(char *buffer, size_t n_bytes, size_t *length, const char *format, ...)
    GAD_PRINTF(4, 5);

static void append(char *buffer, size_t n_bytes, size_t *length, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(buffer + *length, n_bytes - *length, format, ap);
    va_end(ap);
    if (n > 0)
        *length = (size_t)min_u64(*length + (size_t)n, n_bytes - 1);
}

size_t log_format(char *buffer, size_t n_bytes, bool has_priority, enum log_level level,
                  const char *topic, const struct log_fields *fields, const char *text)
{
    size_t length = 0;
    if (n_bytes == 0)
        return 0;
    buffer[0] = '\0';
    if (has_priority)
        append(buffer, n_bytes, &length, "<%d>", levels[level].priority);
    else
        append(buffer, n_bytes, &length, "gpuarrayd: %s: ", levels[level].name);
    append(buffer, n_bytes, &length, "%s: %s", topic, text);
    if (fields && fields->job != 0)
        append(buffer, n_bytes, &length, " JOB=%llu", (unsigned long long)fields->job);
    if (fields && fields->has_uid)
        append(buffer, n_bytes, &length, " UID=%u", fields->uid);
    if (fields && fields->more)
        append(buffer, n_bytes, &length, " %s", fields->more);
    text_make_printable(buffer);
    if (length + 1 >= n_bytes)
        length = n_bytes > 1 ? n_bytes - 2 : 0;
    if (n_bytes > 1)
        buffer[length++] = '\n';
    buffer[length] = '\0';
    return length;
}

static bool emit(const char *line, size_t n_bytes)
{
    if (state.sink == SINK_SOCKET)
        return send(state.fd, line, n_bytes, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n_bytes;
    if (state.sink == SINK_POLLED) {
        struct pollfd p = {.fd = state.fd, .events = POLLOUT};
        if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
            return false;
    }
    int fd = state.own_fd >= 0 ? state.own_fd : state.fd;
    if (state.is_torn && write(fd, "\n", 1) != 1)
        return false;
    ssize_t n = write(fd, line, n_bytes);
    state.is_torn = n > 0 && n < (ssize_t)n_bytes;
    return n == (ssize_t)n_bytes;
}

static bool is_allowed(enum log_level level, const struct log_fields *fields)
{
    struct timespec now;
    if (!fields || !fields->has_uid || level == LOG_LEVEL_DEBUG)
        return true;
    clock_gettime(CLOCK_MONOTONIC, &now);
    bool has_room = !state.account || state.account(state.account_userdata, fields->uid);
    return log_limit_allows(&state.limit, fields->uid, has_room,
                            level == LOG_LEVEL_INFO ? LOG_LIMIT_NOTES : LOG_LIMIT_FAULTS,
                            (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
}

static void put(enum log_level level, const char *topic, const struct log_fields *fields,
                const char *format, va_list ap)
{
    char text[TEXT_BYTES], line[LINE_BYTES];
    if (state.n_unreported > 0) {
        snprintf(text, sizeof(text), "%llu lines found no room",
                 (unsigned long long)state.n_unreported);
        size_t n =
            log_format(line, sizeof(line), state.has_priority, LOG_LEVEL_WARN, "log", NULL, text);
        if (emit(line, n))
            state.n_unreported = 0;
    }
    vsnprintf(text, sizeof(text), format, ap);
    size_t n = log_format(line, sizeof(line), state.has_priority, level, topic, fields, text);
    if (!emit(line, n)) {
        state.n_dropped++;
        state.n_unreported++;
    }
}

bool log_may_write(enum log_level level, const struct log_fields *fields)
{
    return log_is_on(level) && is_allowed(level, fields);
}

void log_put(enum log_level level, const char *topic, const struct log_fields *fields,
             const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    put(level, topic, fields, format, ap);
    va_end(ap);
}

void log_write(enum log_level level, const char *topic, const struct log_fields *fields,
               const char *format, ...)
{
    va_list ap;
    if (!log_may_write(level, fields))
        return;
    va_start(ap, format);
    put(level, topic, fields, format, ap);
    va_end(ap);
}

uint64_t log_n_left_out(void)
{
    return state.limit.n_left_out;
}

bool log_has_untold(void)
{
    return state.limit.n_untold > 0;
}

void log_report(void)
{
    uint32_t uid;
    uint64_t n;
    while (log_limit_untold(&state.limit, &uid, &n))
        log_put(LOG_LEVEL_WARN, "log", LOG_UID(uid),
                "%llu lines were left out: one user may not have more", (unsigned long long)n);
}
