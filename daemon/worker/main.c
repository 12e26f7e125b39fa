/* gpuarrayd-worker-cpu: the program around worker.c. Started by the broker, never by a person.
 *
 * It dies with its broker: by the kernel's signal, and by end of file on its socket. SIGTERM is the
 * same. Signals of a terminal are for the broker to decide about. In each case it leaves at once,
 * with _exit(): threads may be in the middle of a tile, and nothing that they hold outlives them.
 *
 * The lock says who has the pool: a new worker waits here until the old one is gone.
 */
#include "daemon/worker/worker.h"
#include "proto/util.h"

#include <argp.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>

enum { OPTION_FD = 1000, OPTION_PAGE, OPTION_POOL, OPTION_THREADS, OPTION_LOCK, OPTION_LEVEL };

struct options {
    struct worker_config config;
    const char *lock_path;
};

static const struct argp_option option_table[] = {
    {"fd", OPTION_FD, "N", 0, "descriptor of the socket to the broker", 0},
    {"crash-page", OPTION_PAGE, "N", 0, "descriptor of the crash page", 0},
    {"pool", OPTION_POOL, "BYTES", 0, "size of the pool", 0},
    {"threads", OPTION_THREADS, "N", 0, "compute threads (default: one a processor)", 0},
    {"lock", OPTION_LOCK, "PATH", 0, "file to lock as long as the pool is held", 0},
    {"level", OPTION_LEVEL, "NAME", 0, "best instruction set: plain, baseline, avx2, avx512", 0},
    {0},
};

static uint64_t parse_number(const char *text, uint64_t max, struct argp_state *state)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || value > max)
        argp_error(state, "'%s' is not a number from 0 to %llu", text, (unsigned long long)max);
    return value;
}

static enum cpu_level parse_level(const char *text, struct argp_state *state)
{
    for (unsigned i = CPU_LEVEL_PLAIN; i <= CPU_LEVEL_AVX512; i++)
        if (strcmp(text, cpu_level_name((enum cpu_level)i)) == 0)
            return (enum cpu_level)i;
    argp_error(state, "'%s' is no level", text);
    return CPU_LEVEL_AVX512;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case OPTION_FD: o->config.fd_take = (int)parse_number(text, INT32_MAX, state); return 0;
    case OPTION_PAGE: o->config.crash_page_fd = (int)parse_number(text, INT32_MAX, state); return 0;
    case OPTION_POOL: o->config.pool_bytes = parse_number(text, INT64_MAX, state); return 0;
    case OPTION_THREADS:
        o->config.n_threads = (unsigned)parse_number(text, CRASHPAGE_MAX_THREADS / 2, state);
        return 0;
    case OPTION_LOCK: o->lock_path = text; return 0;
    case OPTION_LEVEL: o->config.max_level = parse_level(text, state); return 0;
    case ARGP_KEY_ARG: argp_usage(state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void leave(int number)
{
    (void)number;
    _exit(0);
}

static void set_signals(void)
{
    static const int ignored[] = {SIGPIPE, SIGXFSZ, SIGINT, SIGHUP, SIGQUIT};
    struct sigaction end = {.sa_handler = leave};
    sigemptyset(&end.sa_mask);
    for (unsigned i = 0; i < ARRAY_LENGTH(ignored); i++)
        signal(ignored[i], SIG_IGN);
    sigaction(SIGTERM, &end, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Whether the broker was gone before prctl(): nobody sends a signal then. */
static bool is_alone(int fd)
{
    struct pollfd broker = {.fd = fd, .events = POLLRDHUP};
    return poll(&broker, 1, 0) == 1 && (broker.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

static int take_lock(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return -errno;
    return 0; /* held until the process ends */
}

static int failed(const char *what, int r)
{
    fprintf(stderr, "<3>gpuarrayd-worker-cpu: %s: %s\n", what, strerrordesc_np(-r));
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static const struct argp parser = {.options = option_table,
                                       .parser = parse_option,
                                       .doc = "The worker of gpuarrayd's CPU engine."};
    struct options o = {
        .config = {.fd_take = -1, .crash_page_fd = -1, .max_level = CPU_LEVEL_AVX512}};
    struct worker *worker;
    long n_processors = sysconf(_SC_NPROCESSORS_ONLN);
    o.config.n_threads = n_processors > 0 ? (unsigned)n_processors : 1;
    argp_parse(&parser, argc, argv, 0, NULL, &o);
    if (o.config.fd_take < 0 || o.config.pool_bytes == 0 || o.config.n_threads == 0)
        return failed("--fd, --pool and --threads", -EINVAL);
    set_signals();
    if (is_alone(o.config.fd_take))
        return EXIT_SUCCESS;
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 256 * 1024);
    int r = o.lock_path ? take_lock(o.lock_path) : 0;
    if (r)
        return failed(o.lock_path, r);
    r = worker_new(&o.config, &worker);
    if (r)
        return failed("start", r);
    r = worker_run(worker);
    _exit(r ? failed("the broker's socket", r) : EXIT_SUCCESS);
}
