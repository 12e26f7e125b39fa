/* Journals: where they are, when they are removed, and that one job at a time has one. */
#include "client/array.h"
#include "client/lib/jobs/journal.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64], output[80], beside[96];
static struct gad_array *to;

static void set_up(void)
{
    snprintf(folder, sizeof(folder), "/tmp/gad-journal.XXXXXX");
    cr_assert(ne(ptr, mkdtemp(folder), NULL));
    snprintf(output, sizeof(output), "%s/c", folder);
    snprintf(beside, sizeof(beside), "%s.journal", output);
    to = array_new(NULL, "file", ACCESS_FILE, NULL);
    to->fd = open(output, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert(ge(int, to->fd, 0));
}

static void tear_down(void)
{
    gad_array_release(to);
    unlink(beside);
    unlink(output);
    rmdir(folder);
}

TestSuite(journal, .init = set_up, .fini = tear_down, .timeout = 60);

static struct journal opened(const char *path)
{
    struct journal journal = {0};
    struct gad_error error = {0};
    cr_assert(zero(int, journal_open(&journal, path, to, &error)), "%s", error.message);
    return journal;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

Test(journal, is_beside_its_output_and_goes_with_the_job)
{
    struct journal journal = opened(NULL);
    cr_assert(eq(str, journal.path, beside));
    cr_assert(is_there(beside));
    cr_assert(eq(int, (int)write(journal.fd, "x", 1), 1));
    journal_close(&journal, true, false);
    cr_assert(not(is_there(beside)));
    cr_assert(eq(ptr, journal.path, NULL));
}

Test(journal, stays_where_something_is_in_it_and_the_job_has_failed)
{
    struct journal journal = opened(NULL);
    journal_close(&journal, false, true);
    cr_assert(is_there(beside));
    journal = opened(NULL);
    journal_close(&journal, false, false);
    cr_assert(not(is_there(beside)));
    journal = opened(NULL);
    cr_assert(eq(int, (int)write(journal.fd, "x", 1), 1));
    journal_close(&journal, false, false);
    cr_assert(is_there(beside));
    char found = 0;
    journal = opened(NULL);
    cr_assert(eq(int, (int)pread(journal.fd, &found, 1, 0), 1));
    cr_assert(eq(chr, found, 'x'));
    journal_close(&journal, true, false);
}

Test(journal, can_be_elsewhere)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/other", folder);
    struct journal journal = opened(path);
    cr_assert(is_there(path));
    cr_assert(not(is_there(beside)));
    journal_close(&journal, true, false);
    cr_assert(not(is_there(path)));
}

Test(journal, is_of_files_alone)
{
    struct gad_array *heap = array_new(NULL, "memory", ACCESS_MEMORY, NULL);
    struct gad_error error = {0};
    struct journal journal = {0};
    cr_assert(zero(int, journal_open(&journal, NULL, heap, &error)));
    cr_assert(eq(ptr, journal.path, NULL));
    cr_assert(zero(int, journal_open(&journal, NULL, NULL, &error)));
    cr_assert(eq(int, journal_open(&journal, "/tmp/none", heap, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(str, error.found, "memory"));
    unlink(output); /* has no name any more */
    cr_assert(zero(int, journal_open(&journal, NULL, to, &error)));
    cr_assert(eq(ptr, journal.path, NULL));
    journal_close(&journal, true, false);
    gad_array_release(heap);
}

Test(journal, that_cannot_be_made_says_what_to_do)
{
    struct gad_error error = {0};
    struct journal journal = {0};
    char path[96];
    snprintf(path, sizeof(path), "%s/no/folder", folder);
    cr_assert(eq(int, journal_open(&journal, path, to, &error), GAD_NOT_FOUND));
    cr_assert(eq(str, error.found, path));
    cr_assert(ne(ptr, strstr(error.expected, "--journal"), NULL));
}

Test(journal, is_a_regular_file_and_nothing_else_is_removed)
{
    struct gad_error error = {0};
    struct journal journal = {0};
    cr_assert(zero(int, mkfifo(beside, 0600)));
    cr_assert(eq(int, journal_open(&journal, NULL, to, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(ptr, journal.path, NULL));
    journal_close(&journal, false, false);
    cr_assert(is_there(beside));
}

Test(journal, belongs_to_one_job_at_a_time)
{
    struct journal journal = opened(NULL);
    int go[2];
    cr_assert(zero(int, pipe(go)));
    pid_t child = fork();
    if (child == 0) {
        struct journal mine = {0};
        close(journal.fd); /* the parent's has the lock, too */
        _exit(write(go[1], "g", 1) != 1 || journal_open(&mine, NULL, to, NULL) ||
              !is_there(beside));
    }
    char byte;
    int status;
    cr_assert(eq(int, (int)read(go[0], &byte, 1), 1));
    journal_close(&journal, true, false); /* what the other waits for, or finds gone */
    cr_assert(eq(int, (int)waitpid(child, &status, 0), child));
    cr_assert(eq(int, status, 0));
    cr_assert(is_there(beside));
}
