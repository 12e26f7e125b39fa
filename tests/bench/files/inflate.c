/* How fast a deflated member of an npz archive is unpacked by itself: the limit for what reads it.
 *
 *     inflate ARCHIVE NAME [ROUNDS]
 *
 * Prints the seconds of each round, from opening the archive to the comparison of the CRC.
 */
#include "client/clock.h"
#include "client/formats/npz/npz_member.h"

#include <stdio.h>
#include <stdlib.h>

#define BLOCK_BYTES (256u * 1024)

static int unpack(const char *path, const char *name, void *block, struct gad_error *error)
{
    struct npz_archive archive;
    const struct zip_member *member = NULL;
    struct npz_elements elements = {.stream = NULL};
    int r = npz_archive_open(path, false, path, &archive, error);
    if (r)
        return r;
    r = npz_member_get(&archive, name, &member, error);
    if (r == 0)
        r = npz_member_elements(&archive, member, NULL, &elements, error);
    for (uint64_t at = 0; r == 0 && at < member->size_bytes; at += BLOCK_BYTES) {
        uint64_t n = member->size_bytes - at;
        n = n < BLOCK_BYTES ? n : BLOCK_BYTES;
        if (!elements.stream || npz_stream_read(elements.stream, block, (size_t)n, at))
            r = error_set(error, GAD_BAD_FORMAT, path, "not deflated, or damaged");
    }
    npz_stream_free(elements.stream);
    npz_archive_close(&archive);
    return r;
}

int main(int n_args, char **args)
{
    static char block[BLOCK_BYTES];
    struct gad_error error;
    if (n_args < 3) {
        fprintf(stderr, "usage: inflate ARCHIVE NAME [ROUNDS]\n");
        return 2;
    }
    for (int i = n_args > 3 ? atoi(args[3]) : 1; i > 0; i--) {
        struct timespec began, ended;
        clock_gettime(CLOCK_MONOTONIC, &began);
        if (unpack(args[1], args[2], block, &error)) {
            fprintf(stderr, "inflate: %s\n", error.message);
            return 1;
        }
        clock_gettime(CLOCK_MONOTONIC, &ended);
        printf("%.6f\n", (double)(ended.tv_sec - began.tv_sec) +
                             (double)(ended.tv_nsec - began.tv_nsec) * 1e-9);
    }
    return 0;
}
