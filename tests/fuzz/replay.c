/* The main program of fuzz targets that are built without a fuzzing engine.
 *
 * Every argument is a file or a folder of files. Each file goes to the target as it is, then cut
 * at every length (up to CUT_BYTES) and with single bytes changed by a fixed pseudo-random
 * sequence: the same inputs on every run, on every machine. An input is a heap block of exactly
 * its size, so that the address sanitizer sees the first byte read beyond it.
 *
 * Ends with 1 when nothing could be replayed: a corpus that moved must not pass for a success.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CUT_BYTES 512
#define N_CHANGES 256

static unsigned n_inputs;

static void run_one(const uint8_t *bytes, size_t n_bytes)
{
    uint8_t *input = malloc(n_bytes > 0 ? n_bytes : 1);
    if (input == NULL)
        return;
    memcpy(input, bytes, n_bytes);
    LLVMFuzzerTestOneInput(input, n_bytes);
    free(input);
    n_inputs++;
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 32);
}

static void run_variants(uint8_t *bytes, size_t n_bytes)
{
    run_one(bytes, n_bytes);
    for (size_t n = 0; n < n_bytes && n < CUT_BYTES; n++)
        run_one(bytes, n);
    uint64_t state = n_bytes;
    for (int i = 0; n_bytes > 0 && i < N_CHANGES; i++) {
        size_t at = next_random(&state) % (n_bytes < CUT_BYTES ? n_bytes : CUT_BYTES);
        uint8_t kept = bytes[at];
        bytes[at] = (uint8_t)next_random(&state);
        run_one(bytes, n_bytes);
        bytes[at] = kept;
    }
}

static bool replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    bool is_read = false;
    if (file != NULL && fstat(fileno(file), &info) == 0) {
        size_t n_bytes = (size_t)info.st_size;
        uint8_t *bytes = malloc(n_bytes + 1);
        is_read = bytes != NULL && fread(bytes, 1, n_bytes, file) == n_bytes;
        if (is_read)
            run_variants(bytes, n_bytes);
        free(bytes);
    }
    if (file != NULL)
        fclose(file);
    if (!is_read)
        fprintf(stderr, "replay: cannot read %s\n", path);
    return is_read;
}

static bool replay_folder(const char *path)
{
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    bool is_good = n >= 0;
    for (int i = 0; i < n; i++) {
        char file[4096];
        snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            is_good = replay_file(file) && is_good;
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return is_good;
}

int main(int argc, char **argv)
{
    bool is_good = true;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        bool is_folder = stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode);
        is_good = (is_folder ? replay_folder(argv[i]) : replay_file(argv[i])) && is_good;
    }
    printf("%u inputs\n", n_inputs);
    return is_good && n_inputs > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
