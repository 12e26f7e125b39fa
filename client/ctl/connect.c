/* Connecting, failing and being interrupted: the same for every verb. */
#include "client/ctl/ctl.h"

#include <ctype.h>
#include <string.h>

#define WAIT_STEP_MS 100

static volatile sig_atomic_t interrupted, reader_left;

static void on_signal(int number)
{
    interrupted = 1;
    if (number == SIGPIPE)
        reader_left = 1;
}

/* What is ignored by who started us (nohup, a shell in the background) stays ignored. */
static void watch_signal(int number, int flags)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags}, before;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void ctl_watch_signals(void)
{
    /* Without SA_RESTART, so that a poll in the library ends and the verb sees the flag. A second
     * Ctrl-C ends the process the hard way: what was not committed has no name yet, or a hidden one
     * where HDF5 needs it. */
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        watch_signal(numbers[i], (int)SA_RESETHAND);
    watch_signal(SIGPIPE, 0); /* each write to a closed pipe is one more: none may end us hard */
}

void ctl_end_if_reader_left(void)
{
    if (!reader_left)
        return;
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
}

bool ctl_was_interrupted(void)
{
    return interrupted != 0;
}

int ctl_wait(struct gad_job *job, struct gad_error *error)
{
    for (;;) { /* in steps, so that a signal is seen */
        int r = (int)gad_job_wait(job, WAIT_STEP_MS, error);
        if (r == GAD_TIMEOUT && ctl_was_interrupted())
            r = (int)gad_job_cancel(job, error); /* the second time does nothing */
        else if (r != GAD_TIMEOUT)
            return r;
        if (r && r != GAD_TIMEOUT)
            return r;
    }
}

int ctl_connect(struct gad_client **ret_client, struct gad_error *error)
{
    struct gad_connect_options options = {.client_name = "gpuarrayctl"};
    return (int)gad_connect(&options, ret_client, error);
}

int ctl_connect_existing(struct gad_client **ret_client, struct gad_error *error)
{
    struct gad_connect_options options = {.client_name = "gpuarrayctl", .no_private_daemon = true};
    return (int)gad_connect(&options, ret_client, error);
}

int ctl_exit_code(int status)
{
    switch (status) {
    case GAD_OK: return EXIT_OK;
    case GAD_NO_DAEMON:
    case GAD_DISCONNECTED:
    case GAD_UNTRUSTED:
    case GAD_PROTOCOL:
    case GAD_VERSION:
    case GAD_SHUTTING_DOWN:
    case GAD_OUTCOME_UNKNOWN: return EXIT_CONNECTION;
    case GAD_TIMEOUT: return EXIT_TIMEOUT;
    case GAD_CANCELLED: return ctl_was_interrupted() ? EXIT_INTERRUPTED : EXIT_FAILED;
    default: return EXIT_FAILED;
    }
}

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether the message has the argument, as a word. One of a letter or two, as most of an expression
 * are, is named in quotes, at the beginning or with a "=" behind it: "provide a block" has no 'a'.
 */
static bool is_named(const struct gad_error *error)
{
    const char *name = error->argument;
    size_t n = strlen(name);
    for (const char *at = error->message; (at = strstr(at, name)); at++) {
        char before = at > error->message ? at[-1] : '\'';
        bool is_word = !(is_letter(before) && is_letter(name[0])) &&
                       !(is_letter(at[n]) && is_letter(name[n - 1]));
        if (is_word && (n > 2 || before == '\'' || at[n] == '='))
            return true;
    }
    return false;
}

int ctl_fail_hint(const struct gad_error *error, const char *hint, bool json)
{
    if (json) {
        struct json_object *object = json_object_new_object();
        struct json_object *map = ctl_error_json(error);
        json_object_object_add(map, "hint", json_object_new_string(hint));
        json_object_object_add(object, "error", map);
        ctl_put_json(object);
        return ctl_exit_code((int)error->status);
    }
    fprintf(stderr, "gpuarrayctl: %s",
            error->message[0] ? error->message : gad_status_text((int)error->status));
    if (error->argument[0] && !is_named(error))
        fprintf(stderr, " (%s)", error->argument);
    fprintf(stderr, " [%s]\n", gad_status_word((int)error->status));
    if (error->expected[0])
        fprintf(stderr, "  expected: %s\n", error->expected);
    if (error->found[0])
        fprintf(stderr, "  found:    %s\n", error->found);
    if (hint[0])
        fprintf(stderr, "  try: %s\n", hint);
    return ctl_exit_code((int)error->status);
}

int ctl_fail(const struct gad_error *error, bool json)
{
    char hint[CTL_HINT_SIZE];
    ctl_hint(error, hint, sizeof(hint));
    return ctl_fail_hint(error, hint, json);
}
