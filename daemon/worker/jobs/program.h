/* What the programs of all engines do before and around worker_run(): options that they share,
 * signals, the lock, the end. */
#pragma once

#include "daemon/worker/engine.h"

#include <argp.h>

struct program_options {
    int fd, crash_page_fd; /* -1: not given */
    unsigned n_threads;    /* default: one a processor */
    const char *lock_path; /* NULL: none */
};

/* For the parser of a program as its first child; the input is a struct program_options. */
extern const struct argp program_argp;
void program_options_init(struct program_options *o);

/* The number, or argp_error(). */
uint64_t program_parse_number(const char *text, uint64_t max, struct argp_state *state);

/* Signals, death with the broker, the lock. 0; 1: the broker is gone already; -errno: what failed
 * was told. */
int program_begin(const struct program_options *o) GAD_MUST_CHECK;
/* Takes the engine; gives up by `confine` (daemon/confine.h) what serving does not need, and serves
 * until the broker is gone. Does not return. */
void program_run(const struct program_options *o, struct engine *engine_take, int (*confine)(void))
    __attribute__((noreturn));
/* Tells it and gives the exit status. */
int program_failed(const char *what, int r);
