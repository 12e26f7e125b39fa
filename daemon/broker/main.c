/* gpuarrayd: the broker's program. Parses the command line, sets the process up, serves.
 *
 * Exit status: 0 after a drain; 1 a fault; 2 a mistake on the command line; 3 another daemon serves
 * this socket (a starter then simply connects to it).
 */
#define LOG_TOPIC "main"
#include "daemon/broker/broker.h"
#include "daemon/broker/closer.h"
#include "daemon/broker/log.h"
#include "daemon/broker/options.h"
#include "proto/util.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#define EXIT_OTHER_DAEMON 3
#define WANTED_FILES      65536u
#define CLOSER_TIMEOUT_MS 2000u

/* Nothing of ours may get the number of a standard stream that the starter closed. */
static void fill_standard_streams(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

/* Every queued job holds its client's descriptors. */
static unsigned raise_file_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return 1024;
    if (files.rlim_cur < WANTED_FILES) {
        files.rlim_cur = min_u64(files.rlim_max, WANTED_FILES);
        setrlimit(RLIMIT_NOFILE, &files);
        getrlimit(RLIMIT_NOFILE, &files);
    }
    return (unsigned)min_u64(files.rlim_cur, 1u << 24);
}

/* One arena, and what is free at its end goes back soon. Large messages are mapped, each by itself:
 * among others they would leave holes, and bursts of them a heap several times what it holds. */
static void tame_malloc(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
    mallopt(M_MMAP_THRESHOLD, 32 * 1024);
}

static void tell_ready(int fd)
{
    if (fd < 0)
        return;
    if (write(fd, "R", 1) != 1)
        log_warn(NULL, "nobody waits for readiness: %s", strerror(errno));
    close(fd);
}

static int serve(const struct options *options)
{
    static struct broker broker;
    int r = broker_init(&broker, options), status;
    if (r == 0) {
        tell_ready(options->ready_fd);
        status = broker_run(&broker);
    } else {
        status = r == -EWOULDBLOCK ? EXIT_OTHER_DAEMON : 1;
        log_error(NULL, "%s: %s", options->socket_path,
                  r == -EWOULDBLOCK ? "another daemon serves this socket" : strerror(-r));
    }
    broker_deinit(&broker);
    return status;
}

int main(int argc, char **argv)
{
    struct options options;
    fill_standard_streams();
    int r = options_parse(argc, argv, &options);
    log_open(STDERR_FILENO, options.log_level);
    if (r < 0) {
        log_error(NULL, "the worker's program '%s': %s", options.worker_path, strerror(-r));
        return 1;
    }
    tame_malloc();
    signal(SIGPIPE, SIG_IGN);
    r = closer_start(raise_file_limit());
    if (r < 0) {
        log_error(NULL, "no closer: %s", strerror(-r));
        return 1;
    }
    int status = serve(&options);
    closer_stop(CLOSER_TIMEOUT_MS);
    log_close();
    return status;
}
