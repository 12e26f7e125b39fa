/* The command line of gpuarrayd. */
#pragma once

#include "daemon/broker/log.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OPTIONS_PATH_SIZE 512

struct options {
    const char *socket_path;
    char worker_path[OPTIONS_PATH_SIZE];
    const char *level; /* NULL: the best there is */
    uint64_t pool_bytes;
    uint64_t region_limit_bytes; /* per user */
    unsigned n_threads;
    uint64_t idle_exit_ns; /* 0: stay */
    uint64_t hang_timeout_ns;
    bool is_private;
    mode_t socket_mode;
    unsigned max_queue;
    int ready_fd; /* -1: none */
    enum log_level log_level;
};

/* Does not return for --help, --version and mistakes (exit status 2). 0; -ENOENT: no worker. */
int options_parse(int argc, char **argv, struct options *ret_options) GAD_MUST_CHECK;

/* "32M", "1G", "4096": bytes. */
bool options_parse_size(const char *text, uint64_t *ret_bytes);
/* "60", "0.5": seconds, at most about 30 years. */
bool options_parse_seconds(const char *text, uint64_t *ret_ns);
