/* The catalogue, looked up and misspelt. */
#include "proto/op_arguments.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

Test(ops, every_row_is_complete_and_found_by_its_names)
{
    for (int i = 0; i < OP_COUNT; i++) {
        const struct op_info *info = op_info((enum op)i);
        cr_assert(info->name != NULL && info->doc[0] != '\0');
        cr_assert(info->n_args <= 3 && (info->n_args > 0 || info->rule == OP_RULE_RANDOM));
        cr_assert(info->n_results == 1 || info->n_results == 2);
        if (info->rule == OP_RULE_CAST || info->rule == OP_RULE_INTERNAL)
            continue;
        cr_assert(eq(int, op_find(info->name, strlen(info->name)), i), "%s", info->name);
        if (info->alias != NULL)
            cr_assert(eq(int, op_find(info->alias, strlen(info->alias)), i), "%s", info->alias);
    }
}

Test(ops, what_is_not_there_is_not_found)
{
    cr_assert(eq(int, op_find("sqr", 3), OP_COUNT));
    cr_assert(eq(int, op_find("sqrt", 3), OP_COUNT));
    cr_assert(eq(int, op_find("", 0), OP_COUNT));
    cr_assert(eq(int, op_find("astype", 6), OP_COUNT));
    cr_assert(eq(int, op_find("frexp exponent", 14), OP_COUNT));
}

/* "name=default, *, name, name=default", as Python writes a signature: those without a default come
 * behind the star. */
static void check_keywords(const char *text)
{
    bool has_star = false;
    for (const char *at = text;; at += strspn(at, ", ")) {
        size_t n_name = strcspn(at, "=,"), n_value = strcspn(at + n_name, ",");
        bool is_star = n_name == 1 && *at == '*';
        cr_assert(n_name > 0 && strcspn(at, ", ") >= n_name, "%s", text);
        cr_assert(is_star ? !has_star : has_star || n_value > 1, "%s", text);
        has_star |= is_star;
        at += n_name + n_value;
        if (*at == '\0')
            return;
        cr_assert(at[1] == ' ', "%s", text);
    }
}

Test(ops, optional_arguments_are_written_as_in_python)
{
    unsigned n = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        const char *keywords = op_info((enum op)i)->keywords;
        if (keywords == NULL)
            continue;
        check_keywords(keywords);
        n++;
    }
    cr_assert(eq(u32, n, 50));
    cr_assert(eq(str, (char *)op_info(OP_ROUND)->keywords, (char *)"decimals=0"));
}

/* "a, q": one name for each that must be given, no two the same. */
Test(ops, arguments_have_all_a_name_or_none)
{
    for (int i = 0; i < OP_COUNT; i++) {
        const char *text = op_arguments((enum op)i);
        char names[3][16] = {"", "", ""};
        if (text == NULL || op_info((enum op)i)->rule == OP_RULE_INTERNAL)
            continue;
        int n = sscanf(text, "%15[a-z], %15[a-z], %15[a-z]", names[0], names[1], names[2]);
        cr_assert(eq(int, n, op_info((enum op)i)->n_args), "%s", op_info((enum op)i)->name);
        cr_assert(ne(str, names[0], names[1]), "%s", op_info((enum op)i)->name);
    }
}

Test(ops, two_results_have_four_functions)
{
    for (int i = 0; i < OP_COUNT; i++)
        cr_assert(eq(int, op_info((enum op)i)->n_results == 2,
                     i == OP_DIVMOD || i == OP_FREXP || i == OP_MODF || i == OP_HISTOGRAM));
}

Test(ops, reductions_are_those_over_axes)
{
    cr_assert(op_is_reduction(OP_STD) && op_is_reduction(OP_ARGMAX) && op_is_reduction(OP_ANY));
    cr_assert(op_is_reduction(OP_NORM) && op_is_reduction(OP_SQUARED_DEVIATIONS));
    cr_assert(not(op_is_reduction(OP_NORMAL)));
    cr_assert(op_is_reduction(OP_SUM) && op_is_reduction(OP_MIN) && op_is_reduction(OP_MEAN));
    cr_assert(op_is_reduction(OP_COUNT_NONZERO));
    cr_assert(not(op_is_reduction(OP_MINIMUM)));
    cr_assert(not(op_is_reduction(OP_ADD)));
}

Test(ops, suggests_the_nearest_name)
{
    static const struct {
        const char *text, *want; /* NULL: nothing is near */
    } rows[] = {
        {"sqr", "sqrt"},     {"sqaure", "square"},   {"mni", "min"},
        {"abss", "abs"},     {"flaot32", "float32"}, {"tahn", "tanh"},
        {"wheer", "where"},  {"isnam", "isnan"},     {"floordivide", "floor_divide"},
        {"arcsn", "arcsin"}, {"degree", "degrees"},  {"logicalor", "logical_or"},
        {"selct", "select"}, {"divmd", "divmod"},    {"nantonum", "nan_to_num"},
        {"ceal", "ceil"},    {"indx", "index"},      {"bitcount", "bincount"},
        {"xyz", NULL},       {"fourier", NULL},      {"q", NULL},
        {"", NULL},          {"average", "mean"},    {"avg", "mean"},
        {"ln", "log"},       {"stddev", "std"},      {"variance", "var"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *got = op_suggest(rows[i].text, strlen(rows[i].text));
        if (rows[i].want == NULL)
            cr_assert(got == NULL, "%s: %s", rows[i].text, got);
        else
            cr_assert(got != NULL && strcmp(got, rows[i].want) == 0, "%s: %s", rows[i].text, got);
    }
}

Test(ops, a_very_long_name_gets_no_suggestion)
{
    char text[1000];
    memset(text, 's', sizeof(text));
    cr_assert(op_suggest(text, sizeof(text)) == NULL);
}

Test(ops, the_dtypes_of_every_row_are_of_the_three_kinds)
{
    for (int i = 0; i < OP_COUNT; i++) {
        char text[64];
        snprintf(text, sizeof(text), "%s", op_dtypes((enum op)i));
        unsigned n_words = 0;
        for (char *rest = text, *word; (word = strsep(&rest, " ,"));) {
            bool is_known = strcmp(word, "bool") == 0 || strcmp(word, "int") == 0 ||
                            strcmp(word, "float") == 0 || strcmp(word, "but") == 0 ||
                            strcmp(word, "uint64") == 0 || word[0] == '\0';
            cr_assert(is_known, "%s: '%s'", op_info((enum op)i)->name, word);
            n_words += word[0] != '\0';
        }
        cr_assert(ge(uint, n_words, 1));
    }
    cr_assert(eq(str, (char *)op_dtypes(OP_SUBTRACT), "int float"));
    cr_assert(eq(str, (char *)op_dtypes(OP_BITWISE_AND), "bool int"));
}
