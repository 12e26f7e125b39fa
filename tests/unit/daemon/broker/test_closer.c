/* The closer: what is handed over is closed, soon, in order of nobody's waiting; without it, at
 * once. */
#include "daemon/broker/host/closer.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

Test(closer, closes_at_once_when_it_does_not_run)
{
    int fd = open("/dev/null", O_RDONLY);

    closer_close(fd);
    cr_assert(not(is_open(fd)));
    closer_close(-1);
    closer_stop(10);
}

Test(closer, closes_everything_before_it_stops)
{
    int fds[200];

    cr_assert(eq(int, closer_start(1024), 0));
    for (unsigned i = 0; i < 200; i++)
        fds[i] = open("/dev/null", O_RDONLY);
    for (unsigned i = 0; i < 200; i++)
        closer_close(fds[i]);
    closer_stop(5000);
    cr_assert(eq(uint, closer_n_pending(), 0));
    for (unsigned i = 0; i < 200; i++)
        cr_assert(not(is_open(fds[i])));
}

Test(closer, a_full_ring_closes_at_once)
{
    cr_assert(eq(int, closer_start(1), 0));
    for (unsigned i = 0; i < 100; i++) {
        int fd = open("/dev/null", O_RDONLY);
        cr_assert(ge(int, fd, 0));
        closer_close(fd);
    }
    closer_stop(5000);
    cr_assert(eq(uint, closer_n_pending(), 0));
}

/* A connection whose other end reads nothing, and whose close() waits for that a second. */
static int open_hanging(int *ret_peer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    struct linger second = {.l_onoff = 1, .l_linger = 1};
    static const char bytes[65536];
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(zero(int, bind(listener, (struct sockaddr *)&address, size)));
    cr_assert(zero(int, listen(listener, 1)));
    cr_assert(zero(int, getsockname(listener, (struct sockaddr *)&address, &size)));
    cr_assert(zero(int, connect(fd, (struct sockaddr *)&address, size)));
    *ret_peer = accept(listener, NULL, NULL);
    cr_assert(zero(int, setsockopt(fd, SOL_SOCKET, SO_LINGER, &second, sizeof(second))));
    while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
    close(listener);
    return fd;
}

static bool is_socket(void *userdata, int fd)
{
    int value;
    socklen_t size = sizeof(value);
    (void)userdata;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &size) == 0;
}

static bool is_closed_soon(int fd)
{
    for (unsigned i = 0; i < 400 && is_open(fd); i++)
        usleep(1000);
    return !is_open(fd);
}

Test(closer, what_hangs_holds_up_its_owners_alone)
{
    int peers[12], hanging[12], behind, of_another, file;
    cr_assert(eq(int, closer_start(160), 0));
    closer_look(is_socket, NULL);
    closer_set_owner(1000);
    for (unsigned i = 0; i < 12; i++) {
        cr_expect(not(closer_is_full(1000)), "%u", i);
        hanging[i] = open_hanging(&peers[i]);
        closer_close(hanging[i]);
        is_closed_soon(i == 0 ? hanging[i] : -1); /* its number is given back before it hangs */
    }
    cr_expect(closer_is_full(1000) && !closer_is_full(1001));
    cr_expect(eq(uint, closer_n_pending(), 11));
    file = open("/dev/null", O_RDONLY);
    closer_close(file);
    cr_expect(is_closed_soon(file));
    closer_set_owner(1001);
    of_another = socket(AF_UNIX, SOCK_STREAM, 0);
    closer_close(of_another);
    cr_expect(is_closed_soon(of_another));
    closer_set_owner(1000);
    behind = socket(AF_UNIX, SOCK_STREAM, 0);
    closer_close(behind);
    cr_expect(is_open(behind));
    for (unsigned i = 0; i < 12; i++)
        close(peers[i]); /* nobody waits for them any more */
    cr_expect(is_closed_soon(behind));
    closer_stop(5000);
    cr_expect(eq(uint, closer_n_pending(), 0));
}
