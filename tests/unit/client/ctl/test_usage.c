/* Misspelt words get the nearest one; words that are right reach the verb's parser. */
#include "client/ctl/ctl.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <criterion/redirect.h>
#include <string.h>

/* As connect.c has it; what it is given is what the tests look at. */
static struct gad_error reported;

int ctl_fail_hint(const struct gad_error *error, const char *hint, bool json)
{
    (void)hint;
    (void)json;
    reported = *error;
    return EXIT_USAGE;
}

static const struct argp_option options[] = {
    {"engine", 'e', "NAME", 0, "", 0},
    {"explain", 'x', NULL, 0, "", 0},
    {"json", 0x100, NULL, 0, "", 0},
    {0},
};

struct seen {
    const char *engine, *word;
    bool explain;
};

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct seen *seen = state->input;
    switch (key) {
    case 'e': seen->engine = arg; return 0;
    case 'x': seen->explain = true; return 0;
    case 0x100: return 0;
    case ARGP_KEY_ARG: seen->word = arg; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {options, on_option, "", "", NULL, NULL, NULL};

static int parse(struct seen *ret, const char *a, const char *b)
{
    char words[3][32] = {"gpuarrayctl verb"};
    snprintf(words[1], sizeof(words[1]), "%s", a);
    snprintf(words[2], sizeof(words[2]), "%s", b ? b : "");
    char *argv[] = {words[0], words[1], b ? words[2] : NULL, NULL};
    *ret = (struct seen){0};
    return ctl_parse(&argp, b ? 3 : 2, argv, ret);
}

Test(usage, right_words_reach_the_parser)
{
    struct seen seen;
    cr_assert(zero(int, parse(&seen, "--engine", "--json")));
    cr_assert(zero(int, parse(&seen, "--engine=cpu", "word")));
    cr_assert(zero(int, parse(&seen, "-ecpu", "-x")));
    cr_assert(seen.explain);
    cr_assert(zero(int, parse(&seen, "-xe", "-7")));
    cr_assert(seen.explain);
    cr_assert(zero(int, parse(&seen, "--ex", "-")));
    cr_assert(seen.explain);
    cr_assert(zero(int, parse(&seen, "--", "--nothing")));
}

Test(usage, wrong_words_do_not)
{
    struct seen seen;
    cr_redirect_stderr();
    cr_assert(eq(int, parse(&seen, "--engin", "--jsn"), 0)); /* a value, whatever it looks like */
    cr_assert(eq(int, parse(&seen, "--jsn", NULL), EXIT_USAGE));
    cr_assert(eq(int, parse(&seen, "--e", "cpu"), EXIT_USAGE));
    cr_assert(eq(int, parse(&seen, "--engine", NULL), EXIT_USAGE));
    cr_assert(eq(int, parse(&seen, "--explain=yes", NULL), EXIT_USAGE));
    cr_assert(eq(int, parse(&seen, "-z", NULL), EXIT_USAGE));
    cr_assert(eq(int, parse(&seen, "-xe", NULL), EXIT_USAGE));
}

Test(usage, with_json_the_message_is_an_error_like_any_other)
{
    struct seen seen;
    cr_assert(eq(int, parse(&seen, "--explian", "--json"), EXIT_USAGE));
    cr_assert(eq(int, (int)reported.status, GAD_BAD_ARGUMENT));
    cr_assert(eq(str, reported.message,
                 (char *)"there is no option '--explian'; did you mean '--explain'?"));
}

static const char *nearest_of(const char *word)
{
    struct ctl_nearest nearest = {.word = word};
    const char *const names[] = {"run", "status", "stats", "wait", "watch", "convert"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ctl_nearest_consider(&nearest, names[i]);
    return nearest.best ? nearest.best : "";
}

Test(usage, the_nearest_name_is_near)
{
    cr_assert(eq(str, (char *)nearest_of("stauts"), "status"));
    cr_assert(eq(str, (char *)nearest_of("stats"), "stats"));
    cr_assert(eq(str, (char *)nearest_of("conv"), "convert"));
    cr_assert(eq(str, (char *)nearest_of("rnu"), "run"));
    cr_assert(eq(str, (char *)nearest_of("levitate"), ""));
    cr_assert(eq(str, (char *)nearest_of("ls"), ""));
    cr_assert(eq(str, (char *)nearest_of(""), ""));
    cr_assert(eq(str, (char *)nearest_of("a-word-that-is-longer-than-any-name-is"), ""));
}
