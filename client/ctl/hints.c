/* What to try: one line for each status that a person can do something about.
 *
 * The table is keyed by the stable status, so a hint says what helps with the kind of error, and
 * the error's own message says what it was. A call that is wrong is explained by the help of its
 * own verb. Some hints depend on more than the status: those of errors of the connection on where
 * the daemon is looked for, who may use the socket, which side is older. These are put together
 * here.
 *
 * Called by connect.c and values.c for every error that is printed, as text or as JSON.
 */
#include "client/ctl/ctl.h"

#include "proto/wire/message.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const hints[GAD_STATUS_COUNT] = {
    [GAD_BAD_EXPRESSION] = "'gpuarrayctl ops' lists what can be written, 'gpuarrayctl run --help' "
                           "has examples",
    [GAD_UNKNOWN_NAME] = "'gpuarrayctl ops' lists the functions; arguments are given as "
                         "NAME=SOURCE",
    [GAD_BAD_ARITY] = "'gpuarrayctl ops NAME' says what a function takes",
    [GAD_BAD_SHAPE] = "'gpuarrayctl info SOURCE' prints the shape of an array; shapes broadcast "
                      "as in NumPy",
    [GAD_BAD_DTYPE] = "'gpuarrayctl info SOURCE' prints the dtype of an array; a cast is written "
                      "float64(x)",
    [GAD_BAD_EXTENT] = "compare dtype, shape and offset with the size of the file",
    [GAD_BAD_DESCRIPTOR] = "a regular file: pipes, devices and directories hold no arrays",
    [GAD_READ_ONLY] = "another destination with -o; 'ls -l' shows who may write",
    [GAD_USE_PROVIDER] = "a copy of the file on a local file system",
    [GAD_BAD_REGION] = "the program that uses the library has to be corrected",
    [GAD_UNKNOWN_REGION] = "the program that uses the library has to be corrected",
    [GAD_OVERLAPPING_OUTPUT] = "a destination of its own for each result; --in-place to write "
                               "into a source",
    [GAD_TOO_LARGE_FOR_POOL] = "a larger 'pool' in gpuarrayd.conf, or less in one job; "
                               "'gpuarrayctl info' prints the pool",
    [GAD_TOO_LARGE_FOR_INLINE] = "-o FILE.npy to write the result, or sum, mean, min or max of it",
    [GAD_LIMIT_EXCEEDED] = "several smaller jobs",
    [GAD_SHORT_READ] = "a new copy of the file, or the dtype and shape that it really has",
    [GAD_NO_SPACE] =
        "'df -h' shows what is free, 'ulimit -f' your limit; -o to another file system",
    [GAD_IO_ERROR] = "'dmesg' says more when a disk or a mount is at fault; then the same again",
    [GAD_REGION_FAULT] = "the program that gave the memory has to keep it",
    [GAD_PROVIDER_FAILED] = "'gpuarrayctl show SOURCE' for each source, to find which one is "
                            "damaged",
    [GAD_BAD_CHUNK_TABLE] = "'h5repack' makes a new file of a damaged one",
    [GAD_BAD_JOURNAL] = "another file; or, if a job left this one, its command, which goes on "
                        "with the output as it left it. Remove it to begin anew with what the "
                        "output has now",
    [GAD_NEGATIVE_POWER] = "float64(a) ** b, or float_power(a, b)",
    [GAD_CANCELLED] = "the same again, if that was not meant",
    [GAD_UNKNOWN_JOB] = "'gpuarrayctl jobs' lists the jobs that the daemon remembers",
    [GAD_UNKNOWN_METHOD] = "a newer daemon: 'gpuarrayctl version' prints both versions",
    [GAD_BAD_REQUEST] = "'gpuarrayctl version': command and daemon of the same version",
    [GAD_QUOTA_EXCEEDED] = "'gpuarrayctl jobs' lists what you have there; wait for it, or cancel "
                           "it",
    [GAD_QUEUE_FULL] = "again when some jobs have ended: 'gpuarrayctl watch'",
    [GAD_POISONED] = "whoever administers the daemon: its log says how the worker ended",
    [GAD_WORKER_LOST] = "the same again; whoever administers the daemon finds the reason in its "
                        "log",
    [GAD_NO_ENGINE] = "without --engine; 'gpuarrayctl info' lists the engines and why one is "
                      "not there, 'gpuarrayctl doctor' looks for a GPU",
    [GAD_NOT_FOUND] = "'ls' for files, 'gpuarrayctl info FILE' for what is in one",
    [GAD_BAD_FORMAT] = "'file NAME' says what it is; raw data is named FILE.raw:DTYPE:SHAPE",
    [GAD_EXISTS] = "another name",
    [GAD_BUSY] = "again when the other program has closed the file; 'fuser -v FILE' names it",
    [GAD_PERMISSION] = "'ls -l' shows who may use the file, 'id' your groups",
    [GAD_NO_MEMORY] = "'ulimit -v' and 'free -h' show what the process may have",
    [GAD_BAD_INDEX] = "'gpuarrayctl info SOURCE' prints the shape of an array; its elements are "
                      "counted from 0, or from -1 at the end",
    [GAD_DATASET_CHANGED] = "open the dataset again when nobody writes to its files any more",
    [GAD_BAD_RANK] = "a lower rank; 'gpuarrayctl info SOURCE' prints the shape",
    [GAD_BAD_CHECKPOINT] = "another file for --checkpoint, or remove this one to begin anew",
    [GAD_BAD_BLOCK] = "a function that gives blocks as it is asked for them",
    [GAD_QUEUE_TIMEOUT] = "a longer --queue-timeout, or a higher --priority among your own jobs; "
                          "'gpuarrayctl top' shows who is before it",
    [GAD_DEADLINE_EXCEEDED] = "a longer --deadline; 'gpuarrayctl run --explain' says what the job "
                              "would take by itself",
    [GAD_SINGULAR] = "a ridge (regularisation), or look at the data: columns that depend on others",
    [GAD_PROTOCOL] = "'gpuarrayctl daemon status'; is GPUARRAYD_SOCKET the socket of gpuarrayd?",
    [GAD_DISCONNECTED] = "the same again; 'gpuarrayctl daemon status' says whether one is there",
    [GAD_TIMEOUT] = "'gpuarrayctl ping' says whether the daemon answers; jobs go on meanwhile",
    [GAD_OUTCOME_UNKNOWN] = "look at the result, then the same again",
    [GAD_DEVICE_FAULT] = "the same again; 'dmesg' and the daemon's log say more",
    [GAD_DRAINING] = "again when it takes jobs: 'gpuarrayctl info' says so; admins end that with "
                     "'gpuarrayctl drain --undo'",
    [GAD_SHUTTING_DOWN] = "the same again in a moment",
    [GAD_INTERNAL] = "a report with the daemon's log and the output of 'gpuarrayctl version'",
};

/* The verb whose help has the examples. */
static const char *verb = "run";

void ctl_hint_verb(const char *name)
{
    verb = name;
}

const char *ctl_socket_path(void)
{
    const char *given = getenv("GPUARRAYD_SOCKET");
    return given && given[0] ? given : CTL_SERVICE_SOCKET;
}

/* error.argument is the path, cut. */
static bool is_about_socket(const struct gad_error *error)
{
    return error->argument[0] == '/' &&
           strncmp(error->argument, ctl_socket_path(), sizeof(error->argument) - 1) == 0;
}

/* The group that may use the socket: its own, or that of its folder where that hides it. */
static void hint_permission(char *hint, size_t n_bytes)
{
    char folder[256];
    const char *path = ctl_socket_path();
    struct stat st;
    snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
    const struct group *group =
        stat(path, &st) == 0 || stat(folder, &st) == 0 ? getgrgid(st.st_gid) : NULL;
    const struct passwd *user = getpwuid(geteuid());
    if (group && st.st_gid != 0 && user)
        snprintf(hint, n_bytes,
                 "sudo usermod -aG %s %s, then log in again: the socket is for the group '%s'",
                 group->gr_name, user->pw_name, group->gr_name);
    else if (group)
        snprintf(hint, n_bytes, "whoever administers the machine: the socket is for the group '%s'",
                 group->gr_name);
    else
        snprintf(hint, n_bytes, "whoever owns the folder of the socket, which you may not enter");
}

static void hint_no_daemon(const struct gad_error *error, char *hint, size_t n_bytes)
{
    const char *given = getenv("GPUARRAYD_SOCKET"), *program = getenv("GPUARRAYD_DAEMON");
    if (given && given[0])
        snprintf(hint, n_bytes,
                 "without GPUARRAYD_SOCKET the service or a private daemon is used: unset it");
    else if (strcmp(error->argument, "gpuarrayd") == 0)
        snprintf(hint, n_bytes,
                 "install gpuarrayd, or name the program: export GPUARRAYD_DAEMON=/.../gpuarrayd");
    else if (program && program[0] &&
             strncmp(error->argument, program, sizeof(error->argument) - 1) == 0)
        snprintf(hint, n_bytes, "another GPUARRAYD_DAEMON, or none");
    else if (strstr(error->message, "/log"))
        snprintf(hint, n_bytes, "'gpuarrayctl daemon log' prints why");
    else
        snprintf(hint, n_bytes,
                 "'gpuarrayctl daemon start', or for everybody: sudo systemctl enable --now "
                 "gpuarrayd.socket");
}

/* Either side may have said it: the number that is not ours is the daemon's. */
static void hint_version(const struct gad_error *error, char *hint, size_t n_bytes)
{
    unsigned long expected = strtoul(error->expected, NULL, 10);
    unsigned long found = strtoul(error->found, NULL, 10);
    unsigned long theirs = expected == PROTOCOL_VERSION ? found : expected;
    if (theirs > PROTOCOL_VERSION)
        snprintf(hint, n_bytes,
                 "upgrade gpuarrayctl and libgpuarrayd: they speak protocol %u, the daemon %lu",
                 PROTOCOL_VERSION, theirs);
    else
        snprintf(hint, n_bytes,
                 "upgrade gpuarrayd and restart it: it speaks protocol %lu, this command %u",
                 theirs, PROTOCOL_VERSION);
}

/* Mostly a chunk that cannot be read; show has one source alone. */
static const char *hint_provider_failed(const struct gad_error *error)
{
    if (strcmp(verb, "map") == 0)
        return "the function, or a source of it, as the message says: 'gpuarrayctl show SOURCE' "
               "reads a source";
    return error->argument[0] != '\0' || strcmp(verb, "show") == 0
               ? "a new copy of the file, if it is damaged; 'gpuarrayctl info SOURCE' prints how "
                 "it "
                 "is packed"
               : hints[GAD_PROVIDER_FAILED];
}

/* The broker's words where none was asked for by name, and none starts. */
static const char *hint_no_engine(const struct gad_error *error)
{
    static const char none[] = "no engine ";
    return strncmp(error->message, none, sizeof(none) - 1) == 0
               ? "'gpuarrayctl doctor' looks for the reason, 'gpuarrayctl daemon log' prints what "
                 "the daemon says of it"
               : hints[GAD_NO_ENGINE];
}

void ctl_hint(const struct gad_error *error, char *ret_hint, size_t n_bytes)
{
    int status = (int)error->status;
    ret_hint[0] = '\0';
    if (status == GAD_PERMISSION && is_about_socket(error))
        hint_permission(ret_hint, n_bytes);
    else if (status == GAD_PERMISSION && strstr(error->expected, "admin-group"))
        snprintf(ret_hint, n_bytes,
                 "whoever administers the daemon: 'admin-group' of gpuarrayd.conf names a group "
                 "that may do this");
    else if (status == GAD_NO_DAEMON)
        hint_no_daemon(error, ret_hint, n_bytes);
    else if (status == GAD_VERSION)
        hint_version(error, ret_hint, n_bytes);
    else if (status == GAD_UNTRUSTED && error->argument[0] == '/')
        snprintf(ret_hint, n_bytes,
                 "'ls -ld %s' shows whose it is and who may enter: it has to be yours alone (chmod "
                 "700)",
                 error->argument);
    else if (status == GAD_UNTRUSTED)
        snprintf(ret_hint, n_bytes,
                 "'ls -l %s' shows whose it is: tell whoever administers the machine; nothing was "
                 "sent to it",
                 ctl_socket_path());
    else if (status == GAD_PROVIDER_FAILED)
        snprintf(ret_hint, n_bytes, "%s", hint_provider_failed(error));
    else if (status == GAD_BAD_FORMAT &&
             (strstr(error->found, "damage") || strstr(error->message, "damage")))
        snprintf(ret_hint, n_bytes,
                 "a new copy of the file, if it is damaged; 'gpuarrayctl info FILE' lists what can "
                 "be read of it");
    else if (status == GAD_BAD_FORMAT && strcmp(error->argument, "standard input") == 0)
        snprintf(ret_hint, n_bytes,
                 "what is no npy file is named by what its elements are: -:DTYPE:SHAPE, as in "
                 "-:f4:1000x3");
    else if (status == GAD_NO_ENGINE)
        snprintf(ret_hint, n_bytes, "%s", hint_no_engine(error));
    else if (status == GAD_BAD_EXPRESSION && strcmp(error->found, "','") == 0)
        snprintf(ret_hint, n_bytes, "several results of one job: 'm = mean(a); x = max(a)'");
    else if (status == GAD_BAD_ARGUMENT && strstr(error->found, "along different axes"))
        snprintf(ret_hint, n_bytes,
                 "PRODUCER | tee >(gpuarrayctl run 'sum(a, axis=0)' a=-) | gpuarrayctl run "
                 "'sum(a, axis=1)' a=-, in bash; or a file");
    else if (status == GAD_BAD_ARGUMENT && strstr(error->found, "in several passes"))
        snprintf(ret_hint, n_bytes,
                 "a file, or reductions along the same axes, or along all of them and the first, "
                 "which are one pass: max(a) beside mean(a, axis=0)");
    else if (status == GAD_BAD_ARGUMENT)
        snprintf(ret_hint, n_bytes, "the examples of 'gpuarrayctl %s --help'", verb);
    else if (status > GAD_OK && status < GAD_STATUS_COUNT && hints[status])
        snprintf(ret_hint, n_bytes, "%s", hints[status]);
}
