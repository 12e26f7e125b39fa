/* gpuarrayctl submit: the same job as run's, in the background.
 *
 * Leaves a small process of the user's, which holds the descriptors, feeds and drains what only the
 * client can, and puts the files in their place. The number of the job is printed as soon as the
 * daemon has taken it; a job that is refused fails here, as it would in run.
 */
#include "client/ctl/run.h"

#include "proto/error.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* What the background process tells the one that waits for the job's number. */
struct submit_report {
    uint64_t job;
    struct gad_error error; /* status 0: taken */
};

/* False when nobody hears it any more. */
static bool tell(int fd, const struct submit_report *report)
{
    ssize_t n;
    do
        n = write(fd, report, sizeof(*report)); /* below PIPE_BUF: whole or not at all */
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(*report);
}

static void detach(void)
{
    setsid();
    ctl_watch_signals(); /* SIGTERM cancels the job, so that nothing is left behind */
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2 && null >= 0; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
}

/* The background process: from connecting to the last file in its place. */
static int agent_run(struct run_options *o, int report_fd)
{
    struct submit_report report = {0};
    struct gad_client *client = NULL;
    struct gad_job *job = NULL;
    detach();
    int r = ctl_connect(&client, &report.error);
    if (!r) {
        r = run_open_all(o, client);
        report.error = o->error;
    }
    if (!r) {
        struct gad_job_options options = run_job_options(o, NULL);
        r = (int)gad_submit(client, &options, &job, &report.error);
    }
    while (!r && gad_job_id(job) == 0 && !gad_job_is_done(job)) {
        int waited = (int)gad_dispatch(client, -1, &report.error);
        if (waited == GAD_TIMEOUT && ctl_was_interrupted())
            (void)gad_job_cancel(job, NULL);
        else if (waited != 0 && waited != GAD_TIMEOUT)
            r = waited;
    }
    if (!r && gad_job_id(job) == 0)
        r = (int)gad_job_wait(job, 0, &report.error); /* refused: its error is the report */
    report.error.status = (enum gad_status)r;
    report.job = job ? gad_job_id(job) : 0;
    if (!tell(report_fd, &report) && !r)
        r = GAD_CANCELLED; /* a job whose number nobody has: gad_job_free() cancels it */
    close(report_fd);
    if (!r)
        r = ctl_wait(job, NULL);
    gad_job_free(job);
    ctl_job_deinit(&o->job);
    gad_close(client);
    return r ? EXIT_FAILED : EXIT_OK;
}

static int hear(int fd, struct submit_report *ret_report)
{
    size_t used = 0;
    while (used < sizeof(*ret_report)) {
        ssize_t n = read(fd, (char *)ret_report + used, sizeof(*ret_report) - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return error_set(&ret_report->error, GAD_INTERNAL, NULL,
                             "the background process ended before it said a word");
        used += (size_t)n;
    }
    return (int)ret_report->error.status;
}

/* Nobody is there to print a result, nor a plan. */
static int check_words(struct run_options *o)
{
    int r = 0;
    if (o->explain)
        r = error_set(&o->error, GAD_BAD_ARGUMENT, NULL, "submit explains nothing: use run");
    for (unsigned i = 0; i < o->job.n_outputs && !r; i++) {
        const struct gad_output *output = &o->job.outputs[i];
        if (!output->to_path)
            r = error_set(&o->error, GAD_BAD_ARGUMENT, output->name,
                          "in the background every result needs a destination: -o %s%sFILE",
                          output->name ? output->name : "", output->name ? "=" : "");
    }
    if (!r)
        return 0;
    ctl_fail(&o->error, o->json);
    return EXIT_USAGE;
}

int verb_submit(int argc, char **argv)
{
    struct run_options o = {0};
    int code = run_parse_words(&o, argc, argv);
    int fds[2];
    if (!code)
        code = check_words(&o);
    if (!code && pipe2(fds, O_CLOEXEC)) {
        perror("gpuarrayctl: pipe");
        code = EXIT_FAILED;
    }
    if (code) {
        ctl_job_deinit(&o.job);
        return code;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        _exit(agent_run(&o, fds[1]));
    }
    close(fds[1]);
    struct submit_report report = {0};
    int r = pid < 0 ? error_from_errno(&report.error, errno, NULL, "fork") : hear(fds[0], &report);
    close(fds[0]);
    ctl_job_deinit(&o.job);
    if (r)
        return ctl_fail(&report.error, o.json);
    if (o.json) {
        struct json_object *object = json_object_new_object();
        json_object_object_add(object, "job", json_object_new_uint64(report.job));
        ctl_put_json(object);
    } else {
        printf("%llu\n", (unsigned long long)report.job);
    }
    return EXIT_OK;
}
