/* gpuarrayctl: the daemon on the command line.
 *
 * Each verb is a function with options of its own (argp); this file only finds the verb. Results
 * go to standard output, all else to standard error. The exit codes are listed in ctl.h and in the
 * help text.
 */
#include "client/ctl/ctl.h"

#include <string.h>

static const struct verb {
    const char *name;
    verb_fn *run;
    const char *doc;
} verbs[] = {
    {"run", verb_run, "compute expressions over arrays and wait for the result"},
    {"submit", verb_submit, "the same in the background: prints the job's number at once"},
    {"wait", verb_wait, "wait until a job has ended and its files are in their place"},
    {"status", verb_status, "say how a job is doing"},
    {"cancel", verb_cancel, "end a job"},
    {"jobs", verb_jobs, "list your jobs"},
    {"info", verb_info, "what the daemon is and holds; or an array's dtype and shape"},
    {"show", verb_show, "an array's shape, statistics and histogram"},
    {"ping", verb_ping, "one round trip to the daemon"},
};

static void usage(FILE *file)
{
    fputs("Usage: gpuarrayctl VERB [OPTION...] [ARGUMENT...]\n\nVerbs:\n", file);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        fprintf(file, "  %-8s %s\n", verbs[i].name, verbs[i].doc);
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

/* A result that could not be written was not delivered. */
static int finish(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    perror("gpuarrayctl: standard output");
    return code == EXIT_OK ? EXIT_FAILED : code;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return finish(EXIT_OK);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("gpuarrayctl %s\n", gad_version());
        return finish(EXIT_OK);
    }
    argp_err_exit_status = EXIT_USAGE;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(argv[1], verbs[i].name) == 0) {
            char name[64];
            snprintf(name, sizeof(name), "gpuarrayctl %s", verbs[i].name);
            argv[1] = name;
            return finish(verbs[i].run(argc - 1, argv + 1));
        }
    }
    fprintf(stderr, "gpuarrayctl: there is no verb '%s'; see 'gpuarrayctl --help'\n", argv[1]);
    return EXIT_USAGE;
}
