/* The command line: argp's table, numbers with units, and where the worker's program is.
 *
 * The worker is looked for beside our own executable (an installation in one folder), then in
 * ../worker (a build tree), then in the libexec directory. Called by main.c.
 */
#include "daemon/broker/options.h"
#include "daemon/crashpage.h"
#include "proto/util.h"

#include <argp.h>
#include <ctype.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORKER_NAME        "gpuarrayd-worker-cpu"
#define DEFAULT_SOCKET     "/run/gpuarrayd/socket"
#define DEFAULT_POOL_BYTES (32u * 1024u * 1024u)
#define MIN_POOL_BYTES     (64u * 1024u)

enum {
    KEY_SOCKET = 256,
    KEY_POOL,
    KEY_THREADS,
    KEY_WORKER,
    KEY_IDLE_EXIT,
    KEY_PRIVATE,
    KEY_HANG_TIMEOUT,
    KEY_LOG_LEVEL,
    KEY_MAX_QUEUE,
    KEY_LEVEL,
    KEY_READY_FD,
    KEY_SOCKET_MODE,
    KEY_REGION_LIMIT,
};

static const struct argp_option table[] = {
    {"socket", KEY_SOCKET, "PATH", 0, "listen here (default " DEFAULT_SOCKET ")", 0},
    {"socket-mode", KEY_SOCKET_MODE, "OCTAL", 0, "mode of the socket (660; private: 600)", 0},
    {"private", KEY_PRIVATE, NULL, 0, "for this user alone: the socket's directory is 0700", 0},
    {"pool", KEY_POOL, "SIZE", 0, "bytes that jobs run in, with K, M or G (default 32M)", 0},
    {"threads", KEY_THREADS, "N", 0, "threads that compute (default: all CPUs)", 0},
    {"level", KEY_LEVEL, "NAME", 0, "instructions to use: baseline, avx2, avx512", 0},
    {"worker", KEY_WORKER, "PATH", 0, "the worker's program", 0},
    {"idle-exit", KEY_IDLE_EXIT, "SECONDS", 0, "leave after so long without session or job", 0},
    {"hang-timeout", KEY_HANG_TIMEOUT, "SECONDS", 0, "a tile may take so long (default 60)", 0},
    {"max-queue", KEY_MAX_QUEUE, "N", 0, "jobs that may wait (default 16384)", 0},
    {"region-limit", KEY_REGION_LIMIT, "SIZE", 0, "bytes of regions per user (half the RAM)", 0},
    {"log-level", KEY_LOG_LEVEL, "NAME", 0, "error, warn, info or debug (default warn)", 0},
    {"ready-fd", KEY_READY_FD, "N", 0, "write one byte to this descriptor when listening", 0},
    {0},
};

bool options_parse_size(const char *text, uint64_t *ret_bytes)
{
    char *end;
    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    unsigned shift = 0;
    switch (*end) {
    case 'K':
    case 'k': shift = 10; break;
    case 'M':
    case 'm': shift = 20; break;
    case 'G':
    case 'g': shift = 30; break;
    case '\0': break;
    default: return false;
    }
    if (errno || (shift && end[1] != '\0') || value > (UINT64_MAX >> 1) >> shift)
        return false;
    *ret_bytes = (uint64_t)value << shift;
    return true;
}

bool options_parse_seconds(const char *text, uint64_t *ret_ns)
{
    char *end;
    if (!isdigit((unsigned char)text[0]))
        return false;
    double seconds = strtod(text, &end);
    if (*end != '\0' || !isfinite(seconds) || seconds > 1e9)
        return false;
    *ret_ns = (uint64_t)(seconds * 1e9);
    return true;
}

static bool parse_unsigned(const char *text, int base, unsigned min, unsigned max, unsigned *ret)
{
    char *end;
    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    unsigned long value = strtoul(text, &end, base);
    if (errno || *end != '\0' || value < min || value > max)
        return false;
    *ret = (unsigned)value;
    return true;
}

static bool set_option(struct options *o, int key, const char *value)
{
    unsigned number = 0;
    switch (key) {
    case KEY_POOL:
        return options_parse_size(value, &o->pool_bytes) && o->pool_bytes >= MIN_POOL_BYTES;
    case KEY_REGION_LIMIT: return options_parse_size(value, &o->region_limit_bytes);
    case KEY_THREADS: return parse_unsigned(value, 10, 1, CRASHPAGE_MAX_THREADS, &o->n_threads);
    case KEY_IDLE_EXIT: return options_parse_seconds(value, &o->idle_exit_ns);
    case KEY_HANG_TIMEOUT:
        return options_parse_seconds(value, &o->hang_timeout_ns) && o->hang_timeout_ns > 0;
    case KEY_LOG_LEVEL: return log_level_from_name(value, &o->log_level);
    case KEY_MAX_QUEUE: return parse_unsigned(value, 10, 1, 1u << 20, &o->max_queue);
    case KEY_SOCKET_MODE:
        if (!parse_unsigned(value, 8, 0, 0777, &number))
            return false;
        o->socket_mode = (mode_t)number;
        return true;
    case KEY_READY_FD:
        if (!parse_unsigned(value, 10, 1, 1u << 20, &number))
            return false;
        o->ready_fd = (int)number;
        return true;
    default: return false;
    }
}

static error_t on_option(int key, char *value, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case KEY_SOCKET: o->socket_path = value; return 0;
    case KEY_LEVEL: o->level = value; return 0;
    case KEY_PRIVATE: o->is_private = true; return 0;
    case KEY_WORKER:
        if (strlen(value) >= sizeof(o->worker_path))
            argp_error(state, "the worker's path is too long");
        snprintf(o->worker_path, sizeof(o->worker_path), "%s", value);
        return 0;
    case ARGP_KEY_ARG: argp_error(state, "unexpected argument '%s'", value); return 0;
    default: break;
    }
    for (const struct argp_option *option = table; option->name; option++) {
        if (option->key == key) {
            if (!set_option(o, key, value))
                argp_error(state, "--%s: '%s' is not usable", option->name, value);
            return 0;
        }
    }
    return ARGP_ERR_UNKNOWN;
}

static unsigned count_cpus(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : n > (int)CRASHPAGE_MAX_THREADS ? CRASHPAGE_MAX_THREADS : (unsigned)n;
}

static uint64_t half_of_memory(void)
{
    long n_pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return n_pages > 0 && page_bytes > 0 ? (uint64_t)n_pages / 2 * (uint64_t)page_bytes
                                         : UINT64_C(1) << 30;
}

static int find_worker(char *path, size_t n_bytes)
{
    static const char *const beside[] = {"", "../worker/"};
    char directory[256];
    ssize_t n = readlink("/proc/self/exe", directory, sizeof(directory) - 1);
    if (n > 0) {
        directory[n] = '\0';
        char *slash = strrchr(directory, '/');
        slash[1] = '\0';
        for (unsigned i = 0; i < ARRAY_LENGTH(beside); i++) {
            snprintf(path, n_bytes, "%s%s" WORKER_NAME, directory, beside[i]);
            if (access(path, X_OK) == 0)
                return 0;
        }
    }
    snprintf(path, n_bytes, "%s", GAD_LIBEXECDIR "/gpuarrayd/" WORKER_NAME);
    return access(path, X_OK) == 0 ? 0 : -ENOENT;
}

int options_parse(int argc, char **argv, struct options *ret_options)
{
    static const struct argp argp = {
        .options = table,
        .parser = on_option,
        .doc = "Serves array jobs to the users of this machine.",
    };
    struct options o = {
        .pool_bytes = DEFAULT_POOL_BYTES,
        .region_limit_bytes = half_of_memory(),
        .n_threads = count_cpus(),
        .hang_timeout_ns = UINT64_C(60000000000),
        .socket_mode = (mode_t)-1,
        .max_queue = 16384,
        .ready_fd = -1,
        .log_level = LOG_LEVEL_WARN,
        .socket_path = DEFAULT_SOCKET,
    };
    argp_err_exit_status = 2;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return -EINVAL;
    if (o.socket_mode == (mode_t)-1)
        o.socket_mode = o.is_private ? 0600 : 0660;
    int r = o.worker_path[0] ? (access(o.worker_path, X_OK) == 0 ? 0 : -ENOENT)
                             : find_worker(o.worker_path, sizeof(o.worker_path));
    *ret_options = o;
    return r;
}
