/* gpuarrayd: the broker's program. Reads the settings, sets the process up, serves.
 *
 * Exit status: 0 after a drain; 1 a fault; 2 a mistake on the command line or in the configuration
 * file; 3 another daemon serves this socket (a starter then simply connects to it); 4 there is no
 * device, or not the memory of one, and the settings say engine = cuda.
 */
#define LOG_TOPIC "main"
#include "daemon/broker/broker.h"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/host/notify.h"
#include "daemon/broker/config/options.h"
#include "daemon/confine.h"
#include "proto/util.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define EXIT_MISTAKE      2
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
    if (files.rlim_cur < WANTED_FILES || files.rlim_cur > LOOP_MAX_FDS) {
        files.rlim_cur =
            files.rlim_cur > LOOP_MAX_FDS ? LOOP_MAX_FDS : min_u64(files.rlim_max, WANTED_FILES);
        setrlimit(RLIMIT_NOFILE, &files);
        getrlimit(RLIMIT_NOFILE, &files);
    }
    return (unsigned)files.rlim_cur;
}

/* One arena, and what is free at its end goes back soon. Large messages are mapped, each by itself:
 * among others they would leave holes, and bursts of them a heap several times what it holds. */
static void tame_malloc(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
    mallopt(M_MMAP_THRESHOLD, 32 * 1024);
}

static int serve(const struct options *options)
{
    static struct broker broker;
    int r = broker_init(&broker, options), status;
    if (r == 0) {
        status = broker_run(&broker);
    } else {
        status = r == -EWOULDBLOCK ? EXIT_OTHER_DAEMON : 1;
        if (r < 0)
            log_error(NULL, "%s: %s", options->socket_path,
                      r == -EWOULDBLOCK ? "another daemon serves this socket" : strerror(-r));
    }
    broker_deinit(&broker);
    if (broker.is_stuck) {
        log_warn(NULL, "leaving without a thread that waits for a disk or the service manager");
        _exit(status); /* exit() would wait for it */
    }
    return status;
}

static void tell_mistakes(const struct options *options, const struct config_faults *faults)
{
    char text[SETTING_PATH_SIZE + CONFIG_FAULT_SIZE];
    for (unsigned i = 0; i < faults->n_kept; i++) {
        config_fault_format(options, faults, i, text, sizeof(text));
        fprintf(stderr, "gpuarrayd: %s\n", text);
    }
    if (faults->n > faults->n_kept)
        fprintf(stderr, "gpuarrayd: and %u mistakes more\n", faults->n - faults->n_kept);
}

static int tell_config(const struct options *options)
{
    if (options->is_without_config)
        printf("a private daemon reads no file: the settings are good\n");
    else if (access(options->config_path, F_OK) == 0)
        printf("%s: the settings are good\n", options->config_path);
    else
        printf("%s: there is no such file; the defaults are used\n", options->config_path);
    return fflush(stdout) == 0 ? 0 : 1;
}

static int print_config(void)
{
    settings_print(stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}

/* What is handed over must be looked at before anything else gets a descriptor. */
static int take_socket(struct options *options)
{
    char path[SETTING_SOCKET_SIZE] = "";
    int r = notify_take_socket(&options->listen_fd, path, sizeof(path));
    if (r < 0 || path[0] == '\0')
        return r;
    snprintf(options->socket_path, sizeof(options->socket_path), "%s", path);
    options->sources[SETTING_SOCKET].origin = SETTING_OF_COMMAND_LINE;
    return 0;
}

/* Only what the settings name must be there: without a program for devices the CPU computes. */
static int find_workers(struct options *options)
{
    int r = options->engine == ENGINE_CUDA ? 0 : options_find_worker(options);
    if (r < 0)
        log_error(NULL, "the worker's program '%s': %s", options->worker_path, strerror(-r));
    if (r < 0 || options->engine == ENGINE_CPU)
        return r;
    r = options_find_cuda_worker(options);
    if (r == 0)
        return 0;
    bool is_fault = options->engine == ENGINE_CUDA || options->cuda_worker[0];
    if (is_fault)
        log_error(NULL, "the CUDA worker's program '%s': %s", options->cuda_worker_path,
                  strerror(-r));
    else
        log_info(NULL, "there is no CUDA worker's program: the CPU computes");
    options->cuda_worker_path[0] = '\0';
    return is_fault ? r : 0;
}

/* Workers multiply in their own threads: OpenBLAS is to start none as they load it. */
static void tame_workers(void)
{
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
}

/* A driver starts this helper where the files of its devices are not there yet, as after a boot
 * without a screen. It has more rights than whoever starts it, which workers may not make use of.
 */
static void make_device_files(const struct options *options)
{
    char name[] = "nvidia-modprobe", create[] = "-c0", uvm[] = "-u";
    char *const words[] = {name, create, uvm, NULL};
    pid_t helper;
    if (options->cuda_worker_path[0] && access("/dev/nvidia-uvm", F_OK) < 0 &&
        posix_spawnp(&helper, name, NULL, NULL, words, environ) == 0)
        while (waitpid(helper, NULL, 0) < 0 && errno == EINTR)
            ;
}

/* Before the first worker is started, which inherits it. */
static void give_up_calls(void)
{
    confine_hide();
    int r = confine_broker();
    if (r < 0)
        log_warn(NULL, "all system calls are left to the daemon: %s", strerror(-r));
}

static int set_up(struct options *options, unsigned n_files)
{
    options_find_scan(options);
    int r = find_workers(options);
    if (r == 0)
        r = take_socket(options);
    if (r < 0)
        return r;
    r = closer_start(n_files);
    if (r < 0)
        log_error(NULL, "no closer: %s", strerror(-r));
    if (r < 0)
        return r;
    make_device_files(options);
    give_up_calls();
    return 0;
}

int main(int argc, char **argv)
{
    static struct config_faults faults;
    struct options options;
    enum options_action action;
    fill_standard_streams();
    unsigned n_files = raise_file_limit();
    if (options_parse(argc, argv, &options, &action, &faults) < 0)
        return EXIT_MISTAKE;
    if (faults.n > 0) {
        tell_mistakes(&options, &faults);
        return EXIT_MISTAKE;
    }
    if (action != OPTIONS_SERVE)
        return action == OPTIONS_PRINT_CONFIG ? print_config() : tell_config(&options);
    log_open(STDERR_FILENO, options.log_level);
    tame_malloc();
    tame_workers();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN); /* until the loop takes it */
    if (set_up(&options, n_files) < 0)
        return 1;
    int status = serve(&options);
    closer_stop(CLOSER_TIMEOUT_MS);
    log_close();
    return status;
}
