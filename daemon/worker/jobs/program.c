/* See program.h.
 *
 * A worker is started by the broker, never by a person. It dies with its broker: by the kernel's
 * signal, and by end of file on its socket. SIGTERM is the same. Signals of a terminal are for the
 * broker to decide about. In each case it leaves at once, with _exit(): threads may be in the
 * middle of a tile, and nothing that they hold outlives them.
 *
 * The lock says who has the pool: a new worker waits here until the old one is gone.
 *
 * Where the system runs out of memory a worker is to die before its broker: it can be replaced, and
 * nothing is lost but time; with the broker everybody's jobs would end. So it raises its own
 * oom_score_adj, which anybody may do; where /proc is not there it stays the same.
 */
#include "daemon/worker/jobs/program.h"
#include "daemon/confine.h"
#include "daemon/worker/procfiles.h"
#include "daemon/worker/worker.h"
#include "proto/util.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>

#define VICTIM_SCORE  500
#define MAX_OOM_SCORE 1000

enum { OPTION_FD = 1000, OPTION_PAGE, OPTION_THREADS, OPTION_LOCK };

static const struct argp_option option_table[] = {
    {"fd", OPTION_FD, "N", 0, "descriptor of the socket to the broker", 0},
    {"crash-page", OPTION_PAGE, "N", 0, "descriptor of the crash page", 0},
    {"threads", OPTION_THREADS, "N", 0, "compute threads (default: one a processor)", 0},
    {"lock", OPTION_LOCK, "PATH", 0, "file to lock as long as the pool is held", 0},
    {0},
};

uint64_t program_parse_number(const char *text, uint64_t max, struct argp_state *state)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || value > max)
        argp_error(state, "'%s' is not a number from 0 to %llu", text, (unsigned long long)max);
    return value;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct program_options *o = state->input;
    switch (key) {
    case OPTION_FD: o->fd = (int)program_parse_number(text, INT32_MAX, state); return 0;
    case OPTION_PAGE:
        o->crash_page_fd = (int)program_parse_number(text, INT32_MAX, state);
        return 0;
    case OPTION_THREADS:
        o->n_threads = (unsigned)program_parse_number(text, CRASHPAGE_MAX_THREADS / 2, state);
        return 0;
    case OPTION_LOCK: o->lock_path = text; return 0;
    case ARGP_KEY_ARG: argp_usage(state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

const struct argp program_argp = {.options = option_table, .parser = parse_option};

void program_options_init(struct program_options *o)
{
    long n_processors = sysconf(_SC_NPROCESSORS_ONLN);
    *o = (struct program_options){
        .fd = -1, .crash_page_fd = -1, .n_threads = n_processors > 0 ? (unsigned)n_processors : 1};
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

static void be_the_first_victim(void)
{
    char text[16] = "";
    int score;
    _cleanup_fd_ int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 || sscanf(text, "%d", &score) != 1)
        return;
    int n = snprintf(text, sizeof(text), "%d",
                     score + VICTIM_SCORE > MAX_OOM_SCORE ? MAX_OOM_SCORE : score + VICTIM_SCORE);
    if (pwrite(fd, text, (size_t)n, 0) < 0)
        return; /* it dies by its size alone then */
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

int program_failed(const char *what, int r)
{
    fprintf(stderr, "<3>%s: %s: %s\n", program_invocation_short_name, what, strerrordesc_np(-r));
    return EXIT_FAILURE;
}

int program_begin(const struct program_options *o)
{
    set_signals();
    if (is_alone(o->fd))
        return 1;
    be_the_first_victim();
    procfiles_open();
    confine_hide();
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 256 * 1024);
    int r = o->lock_path ? take_lock(o->lock_path) : 0;
    if (r)
        (void)program_failed(o->lock_path, r);
    return r;
}

void program_run(const struct program_options *o, struct engine *engine_take, int (*confine)(void))
{
    const struct worker_config config = {
        .fd_take = o->fd, .crash_page_fd = o->crash_page_fd, .engine_take = engine_take};
    struct worker *worker;
    int r = worker_new(&config, &worker);
    if (r)
        _exit(program_failed("start", r));
    r = confine();
    if (r)
        fprintf(stderr, "<4>%s: all system calls are left to it: %s\n",
                program_invocation_short_name, strerrordesc_np(-r));
    r = worker_run(worker);
    _exit(r ? program_failed("the broker's socket", r) : EXIT_SUCCESS);
}
