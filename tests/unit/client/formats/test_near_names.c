/* Names as suggestions: what is near comes first, and what does not fit is told by dots. */
#include "client/formats/near_names.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

static struct near_names names;
static char text[NEAR_TEXT_BYTES];

static const char *listed(void)
{
    return near_names_text(&names, text, sizeof(text));
}

Test(near_names, what_is_near_comes_first_the_rest_in_its_order)
{
    names.wanted = "/wind/UWMD";
    cr_assert(eq(str, (char *)listed(), ""));
    near_names_add(&names, "/time");
    near_names_add(&names, "/latitude");
    near_names_add(&names, "/vwnd");
    near_names_add(&names, "/uwnd");
    cr_assert(eq(str, (char *)listed(), "'/uwnd', '/vwnd', '/time', '/latitude'"));
}

Test(near_names, a_near_one_is_seen_among_many_and_dots_stand_for_others)
{
    names.wanted = "/temperature";
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof(name), i == 150 ? "/Temperatur" : "/v%d", i);
        near_names_add(&names, name);
    }
    cr_assert(eq(u32, names.n, NEAR_MAX_NAMES));
    cr_assert(eq(str, (char *)listed(), "'/Temperatur', '/v0', '/v1', '/v2', '/v3', '/v4', ..."));
}

Test(near_names, long_names_are_cut_and_texts_end_in_time)
{
    char name[400] = "/";
    memset(name + 1, 'a', sizeof(name) - 2);
    names.wanted = name;
    near_names_add(&names, "/b");
    near_names_add(&names, name);
    cr_assert(eq(sz, strlen(names.found[0].name), NEAR_NAME_BYTES - 1));
    cr_assert(eq(str, (char *)listed(), "..."));
    char small[8];
    near_names_text(&names, small, sizeof(small));
    cr_assert(strlen(small) < sizeof(small));
}

Test(near_names, the_error_says_what_there_is)
{
    struct gad_error error;
    names.wanted = "/u";
    cr_assert(eq(int, near_names_error(&names, "variable", "a.nc:/u", &error), GAD_NOT_FOUND));
    cr_assert(eq(str, error.message, "no variable '/u'; the file has none"));
    near_names_add(&names, "/v");
    cr_assert(eq(int, near_names_error(&names, "variable", "a.nc:/u", &error), GAD_NOT_FOUND));
    cr_assert(eq(str, error.message, "no variable '/u'; there are '/v'"));
    cr_assert(eq(str, error.argument, "a.nc:/u"));
    cr_assert(eq(str, error.expected, "'/v'"));
    cr_assert(eq(str, error.found, "'/u'"));
}
