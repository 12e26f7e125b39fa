#include "tests/unit/client/lib/daemon/spawned_daemon.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

char scratch[64];
static char daemon_socket[96];
static pid_t daemon_id;

struct gad_client *connect_soon(void)
{
    const struct gad_connect_options options = {.socket = daemon_socket, .no_private_daemon = true};
    struct gad_client *client = NULL;
    for (int i = 0; i < 1000 && gad_connect(&options, &client, NULL); i++)
        usleep(10000);
    return client;
}

struct gad_client *spawn_daemon(void)
{
    snprintf(scratch, sizeof(scratch), "/tmp/gad-client.XXXXXX");
    cr_assert(ne(ptr, mkdtemp(scratch), NULL));
    snprintf(daemon_socket, sizeof(daemon_socket), "%s/socket", scratch);
    char *program = getenv("GPUARRAYD_DAEMON");
    char *arguments[] = {
        program,         (char[]){"--socket"}, daemon_socket,   (char[]){"--engine"},
        (char[]){"cpu"}, (char[]){"--pool"},   (char[]){"16M"}, NULL};
    int r = posix_spawn(&daemon_id, program, NULL, NULL, arguments, environ);
    cr_assert(eq(int, r, 0));
    struct gad_client *client = connect_soon();
    cr_assert(ne(ptr, client, NULL));
    return client;
}

void end_daemon(struct gad_client *client)
{
    char command[128];
    gad_close(client);
    kill(daemon_id, SIGTERM);
    cr_assert(eq(int, waitpid(daemon_id, NULL, 0), daemon_id));
    snprintf(command, sizeof(command), "rm -r %s", scratch);
    cr_assert(eq(int, system(command), 0));
}
