/* Finding and starting the daemon: directories, trust, locks; scripts play the daemon. */
#include "client/clock.h"
#include "client/gpuarrayd.h"
#include "client/lib/connection/launch.h"
#include "client/lib/connection/spawn.h"
#include "client/lib/connection/start.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char scratch[64];

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static void set_up(void)
{
    snprintf(scratch, sizeof(scratch), "/tmp/gad-start.XXXXXX");
    cr_assert(ne(ptr, mkdtemp(scratch), NULL));
    setenv("XDG_RUNTIME_DIR", scratch, 1);
    unsetenv("GPUARRAYD_SOCKET");
    unsetenv("GPUARRAYD_DAEMON");
}

static void tear_down(void)
{
    nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(start, .init = set_up, .fini = tear_down, .timeout = 30);

static const char *path_in(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", scratch, name);
    return path;
}

static void write_script(const char *name, const char *text)
{
    int fd = open(path_in(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    cr_assert(ge(int, fd, 0));
    dprintf(fd, "#!/bin/sh\n%s", text);
    close(fd);
}

Test(start, makes_the_private_directory)
{
    struct stat st;
    cr_assert(zero(int, start_check_directory(path_in("new"), NULL)));
    cr_assert(zero(int, stat(path_in("new"), &st)));
    cr_assert(eq(int, st.st_mode & 0777, 0700));
    cr_assert(zero(int, start_check_directory(path_in("new"), NULL)), "and takes it again");
}

Test(start, refuses_a_directory_that_others_may_enter)
{
    static const int modes[] = {0755, 0770, 0701, 0710, 0702, 0777};
    for (size_t i = 0; i < ARRAY_LENGTH(modes); i++) {
        struct gad_error error;
        char path[128];
        snprintf(path, sizeof(path), "%s/open-%o", scratch, modes[i]);
        cr_assert(zero(int, mkdir(path, 0700)));
        cr_assert(zero(int, chmod(path, (mode_t)modes[i])));
        cr_assert(eq(int, start_check_directory(path, &error), GAD_UNTRUSTED));
        cr_assert(eq(str, error.expected, "mode 0700"));
    }
}

Test(start, refuses_links_and_files)
{
    struct gad_error error;
    cr_assert(zero(int, mkdir(path_in("real"), 0700)));
    char link[128];
    snprintf(link, sizeof(link), "%s/link", scratch);
    cr_assert(zero(int, symlink(path_in("real"), link)));
    cr_assert(eq(int, start_check_directory(link, &error), GAD_UNTRUSTED));
    write_script("file", "");
    cr_assert(eq(int, start_check_directory(path_in("file"), &error), GAD_UNTRUSTED));
}

Test(start, refuses_the_directory_of_another_user)
{
    if (geteuid() != 0)
        cr_skip("only root can make one");
    struct gad_error error;
    cr_assert(zero(int, mkdir(path_in("theirs"), 0700)));
    cr_assert(zero(int, chown(path_in("theirs"), 65534, 65534)));
    cr_assert(eq(int, start_check_directory(path_in("theirs"), &error), GAD_UNTRUSTED));
    cr_assert(eq(str, error.found, "user 65534"));
}

Test(start, falls_back_to_tmp_without_a_runtime_directory)
{
    char path[SOCKET_PATH_SIZE], expected[64];
    cr_assert(zero(int, start_private_directory(path, sizeof(path), NULL)));
    cr_assert(eq(str, path, (char *)path_in("gpuarrayd")));
    snprintf(expected, sizeof(expected), "/tmp/gpuarrayd-%u", geteuid());
    static const char *const unusable[] = {"", "relative", "/nowhere/at/all", "/dev/null"};
    for (size_t i = 0; i < ARRAY_LENGTH(unusable); i++) {
        setenv("XDG_RUNTIME_DIR", unusable[i], 1);
        cr_assert(zero(int, start_private_directory(path, sizeof(path), NULL)));
        cr_assert(eq(str, path, expected));
    }
    unsetenv("XDG_RUNTIME_DIR");
    cr_assert(zero(int, start_private_directory(path, sizeof(path), NULL)));
    cr_assert(eq(str, path, expected));
}

Test(start, does_not_believe_a_runtime_directory_of_another_user)
{
    if (geteuid() != 0)
        cr_skip("only root can make one");
    char path[SOCKET_PATH_SIZE];
    cr_assert(zero(int, chown(scratch, 65534, 65534)));
    cr_assert(zero(int, start_private_directory(path, sizeof(path), NULL)));
    cr_assert(eq(str, path, (char *)"/tmp/gpuarrayd-0"));
}

static int listen_on(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(zero(int, bind(fd, (struct sockaddr *)&address, sizeof(address))));
    cr_assert(zero(int, chmod(path, 0666)));
    cr_assert(zero(int, listen(fd, 4)));
    return fd;
}

static int try_found(const char *socket, struct start_found *ret, struct gad_error *error)
{
    struct start_options options = {.socket = socket, .no_private_daemon = true};
    int r = start_connect(&options, clock_deadline_ms(1000), ret, error);
    if (r == 0)
        close(ret->fd);
    return r;
}

static int try(const char *socket, struct gad_error *error)
{
    struct start_found found;
    return try_found(socket, &found, error);
}

Test(start, connects_to_the_named_socket_or_none)
{
    struct gad_error error;
    char path[128];
    snprintf(path, sizeof(path), "%s/socket", scratch);
    struct start_found found;
    cr_assert(eq(int, try_found(path, &found, &error), GAD_NO_DAEMON));
    cr_assert(not(found.is_refused), "there is no socket");
    int fd = listen_on(path);
    cr_assert(zero(int, try(path, &error)));
    setenv("GPUARRAYD_SOCKET", path, 1);
    cr_assert(zero(int, try(NULL, &error)));
    close(fd);
    cr_assert(eq(int, try_found(NULL, &found, &error), GAD_NO_DAEMON), "nobody listens any more");
    cr_assert(found.is_refused && !found.is_private);
    setenv("GPUARRAYD_SOCKET", "", 1);
    cr_assert(eq(int, try(NULL, &error), GAD_NO_DAEMON), "empty is as good as unset");
}

Test(start, refuses_a_path_that_is_too_long_for_a_socket)
{
    struct gad_error error;
    char path[200];
    memset(path, 'x', sizeof(path) - 1);
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    cr_assert(eq(int, try(path, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(str, error.found, "199 bytes"));
}

Test(start, refuses_a_server_of_another_user)
{
    if (geteuid() != 0)
        cr_skip("only root can be somebody else");
    char path[128];
    snprintf(path, sizeof(path), "%s/socket", scratch);
    cr_assert(zero(int, chmod(scratch, 0777)));
    int ready[2];
    cr_assert(zero(int, pipe(ready)));
    pid_t pid = fork();
    if (pid == 0) {
        if (setresuid(65534, 65534, 65534))
            _exit(1);
        listen_on(path);
        if (write(ready[1], "", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    char byte;
    struct gad_error error;
    cr_assert(eq(long, read(ready[0], &byte, 1), 1));
    int status = try(path, &error);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    cr_assert(eq(int, status, GAD_UNTRUSTED));
    cr_assert(zero(int, strncmp(error.found, "user 65534", 10)), "%s", error.found);
}

Test(start, holds_a_lock_against_a_second_starter)
{
    int first, second;
    struct gad_error error;
    cr_assert(zero(int, launch_lock(scratch, clock_deadline_ms(0), &first, &error)));
    cr_assert(eq(int, launch_lock(scratch, clock_deadline_ms(20), &second, &error), GAD_TIMEOUT));
    close(first);
    cr_assert(zero(int, launch_lock(scratch, clock_deadline_ms(20), &second, &error)));
    close(second);
}

static int launch(const char *daemon, int timeout_ms, struct gad_error *error)
{
    return launch_daemon(scratch, path_in("socket"), daemon, clock_deadline_ms(timeout_ms), error);
}

Test(start, starts_a_daemon_with_the_words_of_the_protocol)
{
    char script[128];
    snprintf(script, sizeof(script), "%s/daemon", scratch);
    write_script("daemon", "echo \"$@\" >\"$3.words\"; pwd >\"$3.pwd\"\n"
                           "ls /proc/self/fd >\"$3.fds\"; echo said >&2; echo r >&3\n");
    struct gad_error error = {0};
    cr_assert(zero(int, launch(script, 5000, &error)), "%s", error.message);
    char words[256] = "", expected[256], name[128];
    snprintf(name, sizeof(name), "%s/socket.words", scratch);
    FILE *file = fopen(name, "r");
    cr_assert(ne(ptr, fgets(words, sizeof(words), file), NULL));
    fclose(file);
    snprintf(expected, sizeof(expected),
             "--private --socket %s/socket --idle-exit 30 --ready-fd 3\n", scratch);
    cr_assert(eq(str, words, expected));
    char pwd[64] = "";
    snprintf(name, sizeof(name), "%s/socket.pwd", scratch);
    file = fopen(name, "r");
    cr_assert(ne(ptr, fgets(pwd, sizeof(pwd), file), NULL));
    fclose(file);
    cr_assert(eq(str, pwd, (char *)"/\n"));
    char log[64] = "";
    file = fopen(path_in("log"), "r");
    cr_assert(ne(ptr, fgets(log, sizeof(log), file), NULL));
    fclose(file);
    cr_assert(eq(str, log, (char *)"said\n"));
}

Test(start, leaks_no_descriptor_into_the_daemon)
{
    char script[128], name[128], line[256];
    int leaky[2], n_pipes = 0;
    cr_assert(zero(int, pipe(leaky))); /* without CLOEXEC, as a careless program's */
    snprintf(script, sizeof(script), "%s/daemon", scratch);
    snprintf(name, sizeof(name), "%s/socket.fds", scratch);
    write_script("daemon", "ls -l /proc/$$/fd >\"$3.fds\"; echo r >&3\n");
    cr_assert(zero(int, launch(script, 5000, NULL)));
    FILE *file = fopen(name, "r");
    while (fgets(line, sizeof(line), file))
        if (strstr(line, "pipe:")) {
            n_pipes++;
            cr_assert(ne(ptr, strstr(line, " 3 -> "), NULL), "%s", line);
        }
    fclose(file);
    cr_assert(eq(int, n_pipes, 1), "the ready pipe alone");
}

Test(start, says_why_a_daemon_did_not_start)
{
    struct gad_error error;
    cr_assert(eq(int, launch("/nowhere/gpuarrayd", 1000, &error), GAD_NO_DAEMON));
    cr_assert(eq(int, launch("/", 1000, &error), GAD_NO_DAEMON));
    char script[128];
    snprintf(script, sizeof(script), "%s/daemon", scratch);
    write_script("daemon", "exit 1\n");
    cr_assert(eq(int, launch(script, 5000, &error), -EAGAIN));
    cr_assert(ne(ptr, strstr(error.message, "/log"), NULL));
    write_script("daemon", "sleep 2\n");
    int64_t began = clock_now_ms();
    cr_assert(eq(int, launch(script, 50, &error), GAD_TIMEOUT));
    cr_assert(lt(i64, clock_now_ms() - began, 1500));
    int fd = open(script, O_WRONLY | O_TRUNC | O_CLOEXEC);
    cr_assert(eq(long,
                 write(fd,
                       "\x7f"
                       "ELFnot",
                       7),
                 7));
    close(fd);
    cr_assert(eq(int, launch(script, 1000, &error), GAD_NO_DAEMON));
}

static volatile sig_atomic_t n_child_signals;

static void on_child(int number)
{
    (void)number;
    n_child_signals++;
}

Test(start, leaves_the_caller_no_child_and_no_signal)
{
    signal(SIGCHLD, on_child);
    char script[128];
    snprintf(script, sizeof(script), "%s/daemon", scratch);
    write_script("daemon", "echo r >&3\n");
    cr_assert(zero(int, launch(script, 5000, NULL)));
    cr_assert(eq(int, waitpid(-1, NULL, WNOHANG | __WALL), -1));
    cr_assert(eq(int, errno, ECHILD));
    cr_assert(zero(int, (int)n_child_signals));
}

Test(start, starts_with_default_signals_and_none_blocked)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    signal(SIGINT, SIG_IGN);
    char script[128], name[128], text[128] = "";
    snprintf(script, sizeof(script), "%s/daemon", scratch);
    snprintf(name, sizeof(name), "%s/socket.signals", scratch);
    write_script("daemon",
                 "grep -E 'Sig(Blk|Ign)' /proc/self/status >\"$3.signals\"; echo r >&3\n");
    cr_assert(zero(int, launch(script, 5000, NULL)));
    FILE *file = fopen(name, "r");
    size_t n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[n] = '\0';
    cr_assert(eq(str, text, (char *)"SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"));
}

Test(start, waits_for_a_daemon_that_is_leaving)
{
    char script[128];
    snprintf(script, sizeof(script), "%s/daemon", scratch);
    write_script("daemon", "test -e $3.gone || { touch $3.gone; exit 1; }; touch $3.second\n");
    struct gad_connect_options options = {.daemon_path = script, .timeout_ms = 3000};
    struct gad_client *client;
    struct gad_error error;
    cr_assert(eq(int, (int)gad_connect(&options, &client, &error), GAD_NO_DAEMON));
    cr_assert(zero(int, access(path_in("gpuarrayd/socket.second"), F_OK)));
    cr_assert(ne(ptr, strstr(error.message, "ended at once"), NULL));
}

Test(start, reports_that_there_is_no_daemon_when_none_may_be_started)
{
    struct gad_connect_options options = {.no_private_daemon = true};
    struct gad_client *client = NULL;
    struct gad_error error;
    cr_assert(eq(int, (int)gad_connect(&options, &client, &error), GAD_NO_DAEMON));
    cr_assert(zero(ptr, client));
}

Test(start, gives_up_on_a_server_that_says_nothing)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/socket", scratch);
    int fd = listen_on(path);
    struct gad_connect_options options = {.socket = path, .timeout_ms = 100};
    struct gad_client *client = NULL;
    struct gad_error error;
    cr_assert(eq(int, (int)gad_connect(&options, &client, &error), GAD_TIMEOUT));
    close(fd);
}
