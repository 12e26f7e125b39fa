/* The process that copies rows does what it is told, and ends by itself where that cannot be: a
 * file that was cut, a list that points elsewhere, a starter that is gone. */
#include "client/scan/row_copy.h"
#include "proto/packet.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_ROWS     4096u
#define ROW_BYTES  64u
#define FILE_BYTES (N_ROWS * ROW_BYTES)
#define LIST_BYTES (sizeof(struct row_copy_list) + N_ROWS * sizeof(struct row_copy_row))

static struct row_copy_list *list;
static char *target;
static int sock, file_fd;
static pid_t process;

static void *map_new(size_t n_bytes, int *ret_fd)
{
    *ret_fd = memfd_create("test", MFD_CLOEXEC);
    cr_assert(eq(int, ftruncate(*ret_fd, (off_t)n_bytes), 0));
    void *map = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
    cr_assert(ne(ptr, map, MAP_FAILED));
    return map;
}

static uint64_t hear(void)
{
    struct row_copy_word word;
    ssize_t n = recv(sock, &word, sizeof(word), 0);
    return n == sizeof(word) ? word.turn : UINT64_MAX;
}

/* A file whose row i is filled with i, and a process for it. */
static void start(void)
{
    int pair[2], fds[3];
    list = map_new(LIST_BYTES, &fds[0]);
    target = map_new(FILE_BYTES, &fds[1]);
    char *rows = map_new(FILE_BYTES, &file_fd);
    for (unsigned i = 0; i < N_ROWS; i++)
        memset(rows + i * ROW_BYTES, (int)(i % 251), ROW_BYTES);
    munmap(rows, FILE_BYTES);
    fds[2] = file_fd;
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0));
    process = fork();
    if (process == 0) {
        dup2(pair[1], 3);
        execl(getenv("GPUARRAYD_SCAN"), "gpuarrayd-scan", ROW_COPY_WORD, NULL);
        _exit(127);
    }
    close(pair[1]);
    sock = pair[0];
    struct row_copy_begin begin = {.magic = ROW_COPY_MAGIC,
                                   .list_bytes = LIST_BYTES,
                                   .target_bytes = FILE_BYTES,
                                   .n_threads = 3,
                                   .n_files = 1,
                                   .file_bytes = {FILE_BYTES}};
    cr_assert(eq(i64, packet_send(sock, &begin, sizeof(begin), fds, ARRAY_LENGTH(fds), 0),
                 (int64_t)sizeof(begin)));
    cr_assert(eq(u64, hear(), 0));
}

static int end(void)
{
    int status;
    close(sock);
    cr_assert(eq(int, waitpid(process, &status, 0), process));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TestSuite(row_copy, .init = start);

/* Row `step * i` of the file to row i of the target; returns the turn that is said to be there. */
static uint64_t copy_all(uint64_t turn, unsigned step, struct row_copy_order order)
{
    for (unsigned i = 0; i < N_ROWS; i++)
        list->rows[i] = (struct row_copy_row){(uint64_t)(i * step % N_ROWS) * ROW_BYTES,
                                              (uint64_t)i * ROW_BYTES};
    order.turn = turn;
    atomic_store(&list->done, 0);
    atomic_store(&list->next, turn << ROW_COPY_TURN_SHIFT);
    for (int i = 0; i < 3; i++) /* the process may be gone by the second one */
        (void)!send(sock, &order, sizeof(order), MSG_NOSIGNAL);
    return hear();
}

static const struct row_copy_order whole = {
    .n_rows = N_ROWS, .row_bytes = ROW_BYTES, .piece_rows = 100};

Test(row_copy, copies_all_rows_of_each_turn_and_ends_with_its_socket)
{
    for (uint64_t turn = 1; turn < 6; turn++) {
        unsigned step = 2 * (unsigned)turn + 1;
        cr_assert(eq(u64, copy_all(turn, step, whole), turn));
        for (unsigned i = 0; i < N_ROWS; i++)
            for (unsigned k = 0; k < ROW_BYTES; k += ROW_BYTES - 1)
                cr_assert(target[i * ROW_BYTES + k] == (char)(i * step % N_ROWS % 251));
    }
    cr_assert(eq(int, end(), 0));
}

Test(row_copy, ends_quietly_where_its_file_was_cut)
{
    cr_assert(eq(u64, copy_all(1, 1, whole), 1));
    cr_assert(eq(int, ftruncate(file_fd, FILE_BYTES / 2), 0));
    cr_assert(eq(u64, copy_all(2, 1, whole), UINT64_MAX));
    cr_assert(eq(int, end(), 1)); /* and by no signal */
}

Test(row_copy, does_nothing_outside_of_its_file_and_target)
{
    struct row_copy_order bad[] = {whole, whole, whole, whole};
    bad[0].file = 1;
    bad[1].n_rows = N_ROWS + 1;
    bad[2].row_bytes = FILE_BYTES + 1;
    bad[3].row_bytes = ROW_BYTES + 1; /* of the last row one byte is outside */
    for (int i = 0; i < 4; i++) {
        if (i > 0)
            start();
        cr_assert(eq(u64, copy_all(1, 1, bad[i]), UINT64_MAX), "order %d", i);
        cr_assert(eq(int, end(), 1), "order %d", i);
    }
}
