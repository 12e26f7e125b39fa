/* How fast the rows of a npy file in the page cache are copied in random order by nothing but two
 * threads that map it: the limit for who shuffles them.
 *
 *     row_copies FILE FIRST_BYTE ROW_BYTES N_ROWS ROUNDS
 *
 * Into 64 MiB of shared memory, over and over, past the cache, and each row is fetched while the
 * one before it is copied. Prints the seconds of each round.
 */
#include "proto/box.h"
#include "tests/bench/bulk.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ROOM_BYTES (UINT64_C(64) << 20)

struct rows {
    const char *first;
    char *to;
    uint32_t *order;
    size_t n, n_bytes, n_room;
};

static void copy(void *data, size_t first, size_t count)
{
    const struct rows *rows = data;

    for (size_t i = first; i < first + count; i++) {
        size_t next = i + 1 < first + count ? i + 1 : i;
        box_copy_past_cache(rows->to + i % rows->n_room * rows->n_bytes,
                            rows->first + rows->order[i] * rows->n_bytes, rows->n_bytes,
                            rows->first + rows->order[next] * rows->n_bytes, rows->n_bytes);
    }
    box_fence();
}

static void shuffle(struct rows *rows)
{
    uint64_t random = 1;

    for (size_t i = 0; i < rows->n; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        size_t j = (size_t)(random >> 32) % (i + 1);
        rows->order[i] = rows->order[j];
        rows->order[j] = (uint32_t)i;
    }
}

int main(int n_args, char **args)
{
    if (n_args != 6) {
        fprintf(stderr, "usage: row_copies FILE FIRST_BYTE ROW_BYTES N_ROWS ROUNDS\n");
        return 2;
    }
    int fd = open(args[1], O_RDONLY | O_CLOEXEC);
    size_t begin = strtoul(args[2], NULL, 10);
    struct rows rows = {.n_bytes = strtoul(args[3], NULL, 10), .n = strtoul(args[4], NULL, 10)};
    const char *file =
        mmap(NULL, begin + rows.n * rows.n_bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    rows.to = mmap(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    rows.order = calloc(rows.n, sizeof(*rows.order));
    if (fd < 0 || file == MAP_FAILED || rows.to == MAP_FAILED || !rows.order || rows.n == 0 ||
        rows.n_bytes == 0 || rows.n_bytes > ROOM_BYTES) {
        fprintf(stderr, "row_copies: %s cannot be mapped\n", args[1]);
        return 1;
    }
    rows.first = file + begin;
    rows.n_room = ROOM_BYTES / rows.n_bytes;
    shuffle(&rows);
    for (int i = atoi(args[5]); i > 0; i--)
        printf("%.6f\n", bulk_parallel(copy, &rows, rows.n, 4096));
    free(rows.order);
    return 0;
}
