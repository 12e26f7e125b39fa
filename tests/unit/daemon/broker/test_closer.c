/* The closer: what is handed over is closed, soon, in order of nobody's waiting; without it, at
 * once. */
#include "daemon/broker/host/closer.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
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
