/* Progress where there is no terminal: a line every ten seconds, and none before. */
#include "client/ctl/ctl.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Until the next one. */
static const char *told(struct ctl_progress *progress, const struct gad_progress *now)
{
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);
    static char text[4096];
    memset(text, 0, sizeof(text));
    cr_assert(file && before >= 0);
    cr_assert(ge(int, dup2(fileno(file), STDERR_FILENO), 0));
    ctl_progress_draw(progress, now);
    ctl_progress_end(progress);
    fflush(stderr);
    cr_assert(ge(int, dup2(before, STDERR_FILENO), 0));
    close(before);
    rewind(file);
    cr_assert(lt(sz, fread(text, 1, 4095, file), 4095));
    fclose(file);
    return text;
}

static const struct gad_progress half = {.tiles_done = 5,
                                         .n_tiles = 10,
                                         .read_bytes = 3000000000u,
                                         .write_bytes = 1000000000u,
                                         .total_bytes = 8000000000u};

Test(progress, is_a_line_every_ten_seconds)
{
    double now = ctl_now_s();
    struct ctl_progress p = {.is_shown = true, .began_s = now - 20, .told_s = now - 9};
    cr_expect(eq(str, (char *)told(&p, &half), ""));
    p.told_s = now - 10.5;
    cr_expect(
        eq(str, (char *)told(&p, &half), "gpuarrayctl:  50%  4 GB of 8 GB  200 MB/s  20 s left\n"));
    cr_expect(eq(str, (char *)told(&p, &half), ""), "the next one is ten seconds later");
    p.told_s = now - 10.5;
    p.began_s = now - 7200;
    const char *text = told(&p, &half);
    cr_expect(strstr(text, "2:00 h left\n") != NULL, "%s", text);
    p.told_s = now - 10.5;
    const struct gad_progress none = {.n_tiles = 0}, begun = {.n_tiles = 10};
    cr_expect(eq(str, (char *)told(&p, &none), ""));
    cr_expect(strstr(told(&p, &begun), "left") == NULL, "nobody knows yet");
}

Test(progress, of_quiet_commands_is_nothing)
{
    struct ctl_progress p;
    ctl_progress_begin(&p, true);
    p.told_s -= 100;
    p.is_bar = false;
    cr_expect(eq(str, (char *)told(&p, &half), ""));
}

Test(progress, of_counted_work_has_a_time_left)
{
    double now = ctl_now_s();
    struct ctl_progress p = {.is_shown = true, .began_s = now - 20, .told_s = now - 11};
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);
    char text[200] = "";
    cr_assert(file && before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    ctl_progress_count(&p, 5, 10, -1, "5 of 10 steps");
    ctl_progress_count(&p, 6, 10, -1, "too soon");
    p.told_s = now - 11;
    ctl_progress_count(&p, 6, 10, 3, "6 of 10 steps");
    fflush(stderr);
    cr_assert(ge(int, dup2(before, STDERR_FILENO), 0));
    close(before);
    rewind(file);
    cr_assert(lt(sz, 0, fread(text, 1, sizeof(text) - 1, file)));
    fclose(file);
    cr_expect(eq(str, (char *)text,
                 "gpuarrayctl: 5 of 10 steps  20 s left\n"
                 "gpuarrayctl: 6 of 10 steps  3 s left\n"));
}
