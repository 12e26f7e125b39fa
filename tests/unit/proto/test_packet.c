#include "proto/util.h"
#include "proto/packet.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

static int pair[2], fds[PACKET_MAX_FDS], got[PACKET_MAX_FDS];
static unsigned n_got;

static void make(void)
{
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0));
    for (unsigned i = 0; i < PACKET_MAX_FDS; i++)
        cr_assert(ge(int, fds[i] = memfd_create("one", 0), 0));
}

TestSuite(packet, .init = make);

static bool is_same_file(int one, int other)
{
    struct stat a, b;
    return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_ino == b.st_ino;
}

Test(packet, brings_descriptors_in_their_order)
{
    static const unsigned counts[] = {0, 1, 2, PACKET_MAX_FDS};
    char bytes[8];
    for (unsigned i = 0; i < 4; i++) {
        cr_assert(eq(long, packet_send(pair[0], "1234567", 8, fds, counts[i], MSG_DONTWAIT), 8));
        cr_assert(
            eq(long, packet_receive(pair[1], bytes, 8, got, counts[i], &n_got, MSG_DONTWAIT), 8));
        cr_assert(eq(str, bytes, "1234567"));
        cr_assert(eq(uint, n_got, counts[i]));
        for (unsigned k = 0; k < n_got; k++) {
            cr_assert(is_same_file(fds[k], got[k]));
            cr_assert(eq(int, fcntl(got[k], F_GETFD), FD_CLOEXEC));
            close(got[k]);
        }
    }
}

Test(packet, says_what_had_no_room_and_gives_what_had)
{
    char bytes[8];
    cr_assert(eq(long, packet_send(pair[0], "1234567", 8, fds, 3, 0), 8));
    cr_assert(eq(long, packet_receive(pair[1], bytes, 8, got, 1, &n_got, 0), -EMSGSIZE));
    cr_assert(eq(uint, n_got, 1));
    cr_assert(is_same_file(fds[0], got[0]));
    cr_assert(eq(long, packet_send(pair[0], "1234567", 8, fds, 1, 0), 8));
    cr_assert(eq(long, packet_receive(pair[1], bytes, 4, got, 1, &n_got, 0), -EMSGSIZE));
    cr_assert(eq(uint, n_got, 1));
    cr_assert(eq(long, packet_send(pair[0], "1234567", 8, fds, 2, 0), 8));
    cr_assert(eq(long, packet_receive(pair[1], bytes, 8, got, 0, &n_got, 0), -EMSGSIZE));
    cr_assert(eq(uint, n_got, 0));
}

Test(packet, of_nobody)
{
    char bytes[8] = {0};
    cr_assert(eq(long, packet_send(pair[0], bytes, 0, fds, 1, 0), 0)); /* from who means no good */
    cr_assert(eq(long, packet_receive(pair[1], bytes, 8, got, 1, &n_got, 0), 0));
    cr_assert(eq(uint, n_got, 1));
    close(got[0]);
    cr_assert(eq(long, packet_receive(pair[1], bytes, 8, got, 1, &n_got, MSG_DONTWAIT), -EAGAIN));
    close(pair[0]);
    cr_assert(eq(long, packet_receive(pair[1], bytes, 8, got, 1, &n_got, 0), 0));
    cr_assert(eq(long, packet_send(pair[1], bytes, 8, fds, 1, 0), -EPIPE));
    cr_assert(eq(uint, n_got, 0));
}
