/* The command line, and the file under it. */
#include "daemon/broker/config/options.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct config_faults faults;
static enum options_action action;
static char path[64];

static int parse(char **argv, struct options *ret)
{
    int n = 0;
    while (argv[n])
        n++;
    return options_parse(n, argv, ret, &action, &faults);
}

static void write_file(const char *text)
{
    snprintf(path, sizeof(path), "/tmp/gpuarrayd-options-XXXXXX");
    int fd = mkstemp(path);
    cr_assert(ge(int, fd, 0));
    cr_assert(eq(sz, (size_t)write(fd, text, strlen(text)), strlen(text)));
    close(fd);
}

static void rewrite_file(const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert(ne(ptr, file, NULL));
    fputs(text, file);
    fclose(file);
}

static void remove_file(void)
{
    if (path[0])
        unlink(path);
}

Test(options, the_command_line_fills_them)
{
    struct options o;
    char *argv[] = {"gpuarrayd",   "--socket",    "/x/y",        "--pool",     "8M",
                    "--threads",   "3",           "--private",   "--worker",   "/bin/true",
                    "--level",     "avx2",        "--idle-exit", "1.5",        "--hang-timeout",
                    "2",           "--max-queue", "9",           "--ready-fd", "7",
                    "--log-level", "debug",       NULL};

    cr_assert(eq(int, parse(argv, &o), 0));
    cr_assert(eq(uint, faults.n, 0));
    cr_assert(eq(int, action, OPTIONS_SERVE));
    cr_assert(eq(str, o.socket_path, "/x/y"));
    cr_assert(eq(u64, o.pool_bytes, 8u << 20));
    cr_assert(eq(uint, o.n_threads, 3));
    cr_assert(o.is_private);
    cr_assert(eq(uint, o.socket_mode, 0600));
    cr_assert(eq(int, options_find_worker(&o), 0));
    cr_assert(eq(str, o.worker_path, "/bin/true"));
    cr_assert(eq(str, o.level, "avx2"));
    cr_assert(eq(u64, o.idle_exit_ns, 1500000000));
    cr_assert(eq(u64, o.hang_timeout_ns, 2000000000));
    cr_assert(eq(uint, o.max_queue, 9));
    cr_assert(eq(int, o.ready_fd, 7));
    cr_assert(eq(int, o.log_level, LOG_LEVEL_DEBUG));
}

Test(options, a_worker_that_is_not_there_is_said)
{
    struct options o;
    char *argv[] = {"gpuarrayd", "--private", "--worker", "/nonexistent/worker", NULL};

    cr_assert(eq(int, parse(argv, &o), 0));
    cr_assert(lt(int, options_find_worker(&o), 0));
    cr_assert(eq(str, o.worker_path, "/nonexistent/worker"));
}

Test(options, a_mistake_ends_the_program_with_status_2, .exit_code = 2)
{
    struct options o;
    char *argv[] = {"gpuarrayd", "--threads", "0", NULL};

    (void)!parse(argv, &o);
}

Test(options, two_files_end_the_program_with_status_2, .exit_code = 2)
{
    struct options o;
    char *argv[] = {"gpuarrayd", "--config", "/a", "--config=/b", NULL};

    (void)!parse(argv, &o);
}

Test(options, an_unknown_one_is_refused)
{
    struct options o;
    char *argv[] = {"gpuarrayd", "--poll=5M", NULL};
    char *value[] = {"gpuarrayd", "--private", "--worker", "--poll", NULL};

    cr_assert(lt(int, parse(argv, &o), 0));
    cr_assert(eq(int, parse(value, &o), 0)); /* a value may look like anything */
}

Test(options, a_private_daemon_has_no_file_but_one_that_is_named, .fini = remove_file)
{
    struct options o;
    char *without[] = {"gpuarrayd", "--private", NULL};
    char *with[] = {"gpuarrayd", "--private", "--config", path, NULL};

    write_file("[queue]\nmax-queue = 5\n");
    cr_assert(eq(int, parse(without, &o), 0));
    cr_assert(o.is_without_config);
    cr_assert(eq(uint, o.max_queue, 16384));
    cr_assert(eq(int, parse(with, &o), 0));
    cr_assert(not(o.is_without_config));
    cr_assert(eq(uint, o.max_queue, 5));
}

Test(options, the_command_line_wins_over_the_file, .fini = remove_file)
{
    struct options o;
    char *argv[] = {"gpuarrayd", "--max-queue=7", "--config", path, NULL};

    write_file("[queue]\nmax-queue = 5\nmax-active = 6\n");
    cr_assert(eq(int, parse(argv, &o), 0));
    cr_assert(eq(uint, faults.n, 0));
    cr_assert(eq(uint, o.max_queue, 7));
    cr_assert(eq(uint, o.max_active, 6));
    cr_assert(eq(int, o.sources[SETTING_MAX_QUEUE].origin, SETTING_OF_COMMAND_LINE));
    cr_assert(eq(int, o.sources[SETTING_MAX_ACTIVE].origin, SETTING_OF_FILE));
    cr_assert(eq(int, o.sources[SETTING_POOL].origin, SETTING_DEFAULT));
}

Test(options, what_the_command_line_overrules_is_still_checked, .fini = remove_file)
{
    struct options o;
    char *argv[] = {"gpuarrayd", "--max-queue=7", "--config", path, NULL};

    write_file("[queue]\nmax-queue = five\n");
    cr_assert(eq(int, parse(argv, &o), 0));
    cr_assert(eq(uint, faults.n, 1));
    cr_assert(eq(uint, faults.kept[0].line, 2));
    cr_assert(eq(uint, o.max_queue, 7));
}

Test(options, a_reload_keeps_the_command_line_and_goes_back_to_defaults, .fini = remove_file)
{
    struct options o, again;
    char *argv[] = {"gpuarrayd", "--max-queue=7", "--config", path, NULL};

    write_file("[queue]\nmax-queue = 5\nmax-active = 6\n");
    cr_assert(eq(int, parse(argv, &o), 0));
    rewrite_file("[users]\nuser-jobs = 3\n");
    options_reload(&o, &again, &faults);
    cr_assert(eq(uint, faults.n, 0));
    cr_assert(eq(uint, again.max_queue, 7));
    cr_assert(eq(uint, again.max_active, 256));
    cr_assert(eq(uint, again.user_jobs, 3));
    cr_assert(eq(uint, o.user_jobs, 4096));
}

Test(options, a_file_that_was_named_must_be_there)
{
    struct options o;
    char *argv[] = {"gpuarrayd", "--config", "/nonexistent/c", NULL};

    cr_assert(eq(int, parse(argv, &o), 0));
    cr_assert(eq(uint, faults.n, 1));
    cr_assert(eq(uint, faults.kept[0].line, 0));
    cr_assert(eq(str, faults.kept[0].text, "/nonexistent/c: No such file or directory"));
}

/* Contradictions ------------------------------------------------------------------------------ */

static const char *contradiction(const char *text, const char *option)
{
    static struct options o;
    char *argv[] = {"gpuarrayd", "--config", path, (char *)option, NULL};
    memset(&faults, 0, sizeof(faults));
    write_file(text);
    cr_assert(eq(int, parse(argv, &o), 0));
    remove_file();
    return faults.n == 1 ? faults.kept[0].text : faults.n == 0 ? "" : "several";
}

Test(options, a_users_part_is_not_more_than_the_whole)
{
    cr_assert(eq(str, (char *)contradiction("[queue]\nuser-active=9\nmax-active=8\n", NULL),
                 "user-active: expected at most max-active, which is 8 (line 3), found 9"));
    cr_assert(eq(uint, faults.kept[0].line, 2));
    cr_assert(
        eq(str, (char *)contradiction("[queue]\nuser-active=9\n", "--max-active=8"),
           "user-active: expected at most max-active, which is 8 (the command line), found 9"));
    cr_assert(eq(str, (char *)contradiction("[users]\nuser-jobs=300\n", "--max-queue=43"),
                 "user-jobs: expected at most the sum of max-queue, which is 43 (the command "
                 "line), and max-active, which is 256 (the default), found 300"));
    cr_assert(eq(str, (char *)contradiction("[users]\nuser-jobs=299\n", "--max-queue=43"), ""));
}

Test(options, pieces_for_a_device_fit_its_memory)
{
    cr_assert(eq(str, (char *)contradiction("[cuda]\nchunk-bytes=16M\ndevice-bytes=12M\n", NULL),
                 "chunk-bytes: expected at most device-bytes, which is 12M (line 3), found 16M"));
    cr_assert(
        eq(str,
           (char *)contradiction("[cuda]\nchunk-bytes=8M\npinned-bytes=32M\n", "--device-depth=5"),
           "device-depth: expected pieces that fit pinned-bytes, which is 32M (line 3); found "
           "5 of chunk-bytes, together 40M"));
    cr_assert(
        eq(str,
           (char *)contradiction("[cuda]\nchunk-bytes=8M\npinned-bytes=32M\n", "--device-depth=4"),
           ""));
    cr_assert(eq(str, (char *)contradiction("[cuda]\ndevice-bytes=12M\n", "--device-depth=9"), ""));
    cr_assert(ne(ptr,
                 strstr(contradiction("[cuda]\npinned-bytes=1T\n", NULL),
                        "pinned-bytes: expected at most the memory of this machine"),
                 NULL));
}

Test(options, the_cuda_worker_is_found_or_not)
{
    struct options o;
    char *argv[] = {"gpuarrayd", "--private", "--cuda-worker", "/nonexistent/worker", NULL};

    cr_assert(eq(int, parse(argv, &o), 0));
    cr_assert(eq(int, options_find_cuda_worker(&o), -ENOENT));
    cr_assert(eq(str, o.cuda_worker_path, "/nonexistent/worker"));
    snprintf(o.cuda_worker, sizeof(o.cuda_worker), "/bin/true");
    cr_assert(eq(int, options_find_cuda_worker(&o), 0));
    cr_assert(eq(str, o.cuda_worker_path, "/bin/true"));
}

Test(options, a_default_never_contradicts)
{
    struct options o;
    char *argv[] = {"gpuarrayd", "--private", "--max-active=2", "--max-queue=1", NULL};

    cr_assert(eq(int, parse(argv, &o), 0));
    cr_assert(eq(uint, faults.n, 0));
    cr_assert(eq(uint, o.user_active, 2));
}

Test(options, no_limit_is_more_than_the_machine_has)
{
    cr_assert(ne(ptr,
                 strstr(contradiction("[engine]\npool=1T\n", NULL),
                        "pool: expected at most the memory of this machine"),
                 NULL));
    cr_assert(ne(ptr,
                 strstr(contradiction("[users]\nregion-limit=9999T\n", NULL),
                        "region-limit: expected at most the memory of this machine"),
                 NULL));
    cr_assert(eq(str, (char *)contradiction("[users]\nregion-limit=100%\n", NULL), ""));
}
