/* gpuarrayctl: the daemon on the command line.
 *
 * Each verb is a function with options of its own (argp); this file only finds the verb. Results
 * go to standard output, all else to standard error. The exit codes are listed in ctl.h and in the
 * help text. A word that is no verb gets the nearest one, by spelling or by what other programs
 * call the same thing.
 */
#include "client/ctl/ctl.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum group { GROUP_DAEMON, GROUP_COMPUTE, GROUP_MOVE, GROUP_JOBS, GROUP_ARRAYS, N_GROUPS };

static const char *const group_titles[N_GROUPS] = {
    [GROUP_COMPUTE] = "Compute",   [GROUP_MOVE] = "Move into another layout",
    [GROUP_JOBS] = "Your jobs",    [GROUP_ARRAYS] = "Arrays",
    [GROUP_DAEMON] = "The daemon",
};

static const enum group group_order[N_GROUPS] = {GROUP_COMPUTE, GROUP_MOVE, GROUP_JOBS,
                                                 GROUP_ARRAYS, GROUP_DAEMON};

static const struct verb {
    const char *name;
    verb_fn *run;
    const char *doc;
    enum group group;
    const char *also; /* what others call it */
} verbs[] = {
    {"run", verb_run, "compute expressions over arrays and wait for the result", GROUP_COMPUTE,
     "eval compute exec calc"},
    {"submit", verb_submit, "the same in the background: prints the job's number at once",
     GROUP_COMPUTE, "start batch queue spawn"},
    {"convert", verb_convert, "copy an array into another file, format or dtype", GROUP_COMPUTE,
     "copy export cast"},
    {"matmul", verb_matmul, "multiply matrices of any size; add into an existing one",
     GROUP_COMPUTE, "multiply dot gemm product mm"},
    {"map", verb_map, "compute by a function of your own, block by block, in this process",
     GROUP_COMPUTE, "apply kernel blocks stencil map_blocks plugin"},
    {"cp", verb_cp, "a tensor as a sum of outer products, read and never held", GROUP_COMPUTE,
     "parafac candecomp als"},
    {"tucker", verb_tucker, "a tensor as a small core and a factor for each axis", GROUP_COMPUTE,
     "hosvd hooi"},
    {"reconstruct", verb_reconstruct, "the tensor that factors stand for", GROUP_COMPUTE,
     "compose unfactor"},
    {"svd", verb_svd, "singular values and vectors of a matrix of any size", GROUP_COMPUTE,
     "singular eig decompose"},
    {"pca", verb_pca, "principal components of a matrix of any size", GROUP_COMPUTE,
     "components eof"},
    {"lstsq", verb_lstsq, "least squares and ridge regressions of any number of rows",
     GROUP_COMPUTE, "regress fit ridge linear"},
    {"random", verb_random, "make an array of random numbers", GROUP_COMPUTE,
     "rand generate sample normal uniform"},
    {"ops", verb_ops, "list the operations of expressions", GROUP_COMPUTE, "functions operators"},
    {"transpose", verb_transpose, "permute the axes of an array", GROUP_MOVE, "permute swapaxes"},
    {"concatenate", verb_concatenate, "join arrays along an axis", GROUP_MOVE,
     "concat join append"},
    {"stack", verb_stack, "join arrays along a new axis", GROUP_MOVE, "vstack hstack dstack"},
    {"flip", verb_flip, "reverse an array along axes", GROUP_MOVE, "reverse mirror"},
    {"roll", verb_roll, "move elements along axes, around the end", GROUP_MOVE, "shift rotate"},
    {"tile", verb_tile, "repeat an array", GROUP_MOVE, "repeat"},
    {"pad", verb_pad, "put a border around an array", GROUP_MOVE, "border extend"},
    {"take", verb_take, "pick elements by their indices, or by a mask", GROUP_MOVE,
     "index select pick gather rows mask"},
    {"shuffle", verb_shuffle, "write the rows of an array in random order", GROUP_MOVE,
     "permute random order mix"},
    {"batches", verb_batches, "take batches of rows of arrays, in order or shuffled", GROUP_MOVE,
     "dataset loader epoch minibatch"},
    {"diff", verb_diff, "differences of neighbours along an axis", GROUP_COMPUTE,
     "difference gradient delta"},
    {"wait", verb_wait, "wait until jobs have ended and their files are in their place", GROUP_JOBS,
     "join"},
    {"watch", verb_watch, "follow a job, or all of yours, until they have ended", GROUP_JOBS,
     "follow tail progress"},
    {"status", verb_status, "say how jobs are doing", GROUP_JOBS, "state"},
    {"cancel", verb_cancel, "end jobs", GROUP_JOBS, "kill abort rm delete"},
    {"pause", verb_pause, "hold jobs back, so that others go on", GROUP_JOBS, "hold suspend stop"},
    {"resume", verb_resume, "let paused jobs go on", GROUP_JOBS, "continue unpause release"},
    {"jobs", verb_jobs, "list your jobs", GROUP_JOBS, "list ls ps"},
    {"trace", verb_trace, "what a job did, tile by tile, for Perfetto", GROUP_JOBS,
     "timeline perfetto profile spans"},
    {"info", verb_info, "what is in a file; an array's dtype and shape; what the daemon is",
     GROUP_ARRAYS, "describe header"},
    {"show", verb_show, "an array's shape, statistics and histogram", GROUP_ARRAYS,
     "head print summary histogram cat"},
    {"formats", verb_formats, "list the formats of files, and what may pack them", GROUP_ARRAYS,
     "codecs filters extensions"},
    {"stats", verb_stats, "what the daemon has done so far, also for Prometheus", GROUP_DAEMON,
     "metrics statistics counters"},
    {"top", verb_top, "users, jobs, rates and waits, refreshed in place", GROUP_DAEMON,
     "htop monitor load"},
    {"users", verb_users, "who is there, what each holds and may hold; weights", GROUP_DAEMON,
     "who w quota limits weight"},
    {"drain", verb_drain, "for admins: take no new jobs, and wait until none run", GROUP_DAEMON,
     "maintenance close quiesce"},
    {"ping", verb_ping, "round trips to the daemon", GROUP_DAEMON, "hello"},
    {"daemon", verb_daemon, "say which daemon answers; start or stop a private one", GROUP_DAEMON,
     "server service stop restart"},
    {"doctor", verb_doctor, "look for what is wrong on this machine, and say what to do",
     GROUP_DAEMON, "check diagnose health"},
    {"version", verb_version, "versions of command, library and daemon", GROUP_DAEMON, "about"},
};
#define N_VERBS (sizeof(verbs) / sizeof(verbs[0]))

static const char *const own_words[] = {"help", "--help", "--version"};

static void usage(FILE *file)
{
    fputs("Usage: gpuarrayctl VERB [OPTION...] [ARGUMENT...]\n", file);
    for (unsigned g = 0; g < N_GROUPS; g++) {
        fprintf(file, "\n%s:\n", group_titles[group_order[g]]);
        for (size_t i = 0; i < N_VERBS; i++)
            if (verbs[i].group == group_order[g])
                fprintf(file, "  %-12s %s\n", verbs[i].name, verbs[i].doc);
    }
    fputs("\nExamples:\n"
          "  gpuarrayctl run 'sqrt(u*u + v*v)' u=winds.h5:/UWND v=winds.h5:/VWND -o speed.npy\n"
          "  gpuarrayctl run 'lo = min(a); hi = max(a)' a=big.npy\n"
          "  gpuarrayctl run 'a * k' a=scan.raw:u2:4096x4096 k=0.5 -o r.h5:/scaled --explain\n"
          "  gpuarrayctl show speed.npy\n"
          "\n'gpuarrayctl VERB --help' describes a verb.\n"
          "Exit codes: 0 done, 1 failed, 2 wrong command line, 3 no daemon, 4 time over, "
          "130 Ctrl-C.\n",
          file);
}

/* A result that could not be written was not delivered. At the exit, since argp calls it by itself
 * after --help. */
static void check_output(int code, void *data)
{
    (void)data;
    bool is_written = fflush(stdout) == 0 && !ferror(stdout);
    ctl_end_if_reader_left(); /* "| head" wants no more: not an error */
    if (is_written)
        return;
    perror("gpuarrayctl: standard output");
    _exit(code == EXIT_OK ? EXIT_FAILED : code);
}

static bool is_listed(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at && n > 0; at = strchr(at, ' ')) {
        at += strspn(at, " ");
        if (strncmp(at, word, n) == 0 && (at[n] == ' ' || at[n] == '\0'))
            return true;
    }
    return false;
}

static const char *nearest_verb(const char *word)
{
    struct ctl_nearest nearest = {.word = word};
    for (size_t i = 0; i < N_VERBS; i++)
        if (is_listed(verbs[i].also, word))
            return verbs[i].name;
    for (size_t i = 0; i < N_VERBS; i++)
        ctl_nearest_consider(&nearest, verbs[i].name);
    for (size_t i = 0; i < sizeof(own_words) / sizeof(own_words[0]); i++)
        ctl_nearest_consider(&nearest, own_words[i]);
    return nearest.best;
}

static int no_such_verb(int argc, char **argv)
{
    const char *nearest = nearest_verb(argv[1]);
    bool json = ctl_wants_json(argc, argv);
    if (nearest)
        return ctl_usage_report("gpuarrayctl", json, "gpuarrayctl --help",
                                "there is no verb '%s'; did you mean '%s'?", argv[1], nearest);
    return ctl_usage_report("gpuarrayctl", json, "gpuarrayctl --help", "there is no verb '%s'",
                            argv[1]);
}

/* Errors that it prints are those of jobs that were submitted. */
static bool shows_jobs(const struct verb *verb)
{
    return verb->run == verb_wait || verb->run == verb_status || verb->run == verb_watch;
}

/* HDF5, which the library brings, closes itself at the exit of a process, and where a damaged file
 * has left something in it that prints a list of that, or fails. Whatever we write is closed by
 * then. A function of the user's own (map) may leave it files to close. */
static void keep_hdf5_open(const struct verb *verb)
{
    int (*dont_atexit)(void);
    void *found = verb->run == verb_map ? NULL : dlsym(RTLD_DEFAULT, "H5dont_atexit");
    memcpy(&dont_atexit, &found, sizeof(found)); /* ISO C knows no cast between these */
    if (found)
        dont_atexit();
}

static int run_verb(int argc, char **argv)
{
    for (size_t i = 0; i < N_VERBS; i++) {
        if (strcmp(argv[1], verbs[i].name) == 0) {
            char name[64];
            snprintf(name, sizeof(name), "gpuarrayctl %s", verbs[i].name);
            argv[1] = name;
            ctl_hint_verb(shows_jobs(&verbs[i]) ? "submit" : verbs[i].name);
            keep_hdf5_open(&verbs[i]);
            return verbs[i].run(argc - 1, argv + 1);
        }
    }
    return no_such_verb(argc, argv);
}

/* A closed one would become the number of the next file or socket, and texts would go there. The
 * wrong way round, so that writing to it is still an error. */
static void occupy_standard_descriptors(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    occupy_standard_descriptors();
    on_exit(check_output, NULL);
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    argp_err_exit_status = EXIT_USAGE;
    if (strcmp(argv[1], "help") == 0 && argc > 2 && argv[2][0] != '-') {
        char help[] = "--help", *words[] = {argv[0], argv[2], help, NULL};
        return run_verb(3, words);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("gpuarrayctl %s\n", gad_version());
        return EXIT_OK;
    }
    return run_verb(argc, argv);
}
