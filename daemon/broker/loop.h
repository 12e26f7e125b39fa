/* The event loop, as the rest of the broker sees it: watched sockets, deadlines, signals, a child,
 * and a function that runs once before each wait. libuv stays behind it: a handle may be freed only
 * in its close callback, so watches close in two steps here and their owners need not. */
#pragma once

#include "daemon/broker/deadlines.h"
#include "daemon/broker/linger.h"
#include "proto/error.h"

#include <sys/types.h>

struct loop;
struct loop_watch;
struct child;

#define LOOP_MAX_FDS 131072u /* descriptors that are watched are below this */

enum { WATCH_READ = 1, WATCH_WRITE = 2 };

typedef void (*loop_func)(void *userdata);
typedef void (*loop_watch_func)(void *userdata, unsigned events);
typedef void (*signal_func)(void *userdata, int signal_number);
typedef void (*exit_func)(void *userdata, int exit_code, int term_signal);

int loop_new(struct loop **ret_loop) GAD_MUST_CHECK;
/* Memory for watches of descriptors up to this number: libuv ends the process where it finds none
 * as they come. 0, -errno. */
int loop_reserve(struct loop *loop, unsigned n_fds) GAD_MUST_CHECK;
/* NULL; watches and children were closed before. What a thread still works on is left to it. */
struct loop *loop_free(struct loop *loop);
int loop_run(struct loop *loop) GAD_MUST_CHECK; /* until loop_stop() */
void loop_stop(struct loop *loop);

/* Called before each wait: the place to send what the events of this round brought about. */
void loop_set_turn(struct loop *loop, loop_func func, void *userdata);
/* While set, a wait only looks and does not sleep: there is work left over. */
void loop_set_busy(struct loop *loop, bool is_busy);
/* What is waited for from now on; where it has come soon so far, the wait begins awake. */
void loop_set_wait(struct loop *loop, enum linger_kind kind);
int loop_add_signal(struct loop *loop, int signal_number, signal_func func,
                    void *userdata) GAD_MUST_CHECK; /* at most 4 */

uint64_t loop_used_ns(void); /* of a processor, by this thread */
uint64_t loop_now_ns(void);  /* CLOCK_MONOTONIC */

struct deadlines *loop_deadlines(struct loop *loop);

/* Calls `work` in a thread, then `done` in the loop: for what may wait. -ENOMEM and the like:
 * neither is called. */
int loop_work(struct loop *loop, loop_func work, loop_func done, void *userdata) GAD_MUST_CHECK;
/* Before the end: waits a moment for work that is under way. False: some is stuck; exit() would
 * wait for it. */
bool loop_finish_work(struct loop *loop) GAD_MUST_CHECK;

/* Watches a socket that stays the caller's, for nothing at first. It must stay open until
 * loop_watch_close(). An error or hang-up is reported as WATCH_READ: reading then says what it is.
 */
int loop_watch_new(struct loop *loop, int fd, loop_watch_func func, void *userdata,
                   struct loop_watch **ret_watch) GAD_MUST_CHECK;
int loop_watch_set(struct loop_watch *watch, unsigned events) GAD_MUST_CHECK;
bool loop_watch_asks_for(const struct loop_watch *watch, unsigned events); /* as was set last */
struct loop_watch *
loop_watch_close(struct loop_watch *watch); /* NULL; no more calls from here on */

/* Starts a program in a session of its own; fds[i] becomes its descriptor 3 + i; it has no input,
 * its output is dropped, its stderr is ours. */
int child_start(struct loop *loop, char *const *argv, const int *fds, unsigned n_fds,
                exit_func func, void *userdata, struct child **ret_child) GAD_MUST_CHECK;
pid_t child_pid(const struct child *child);
void child_kill(struct child *child, int signal_number); /* not after its exit */
struct child *child_close(struct child *child);          /* NULL; also after its exit */
