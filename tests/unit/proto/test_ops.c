/* The catalogue, looked up and misspelt. */
#include "proto/ops.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

Test(ops, every_row_is_complete_and_found_by_its_names)
{
    for (unsigned i = 0; i < OP_N_ROWS; i++) {
        const struct op_info *info = op_row_info(i);
        cr_assert(info->name != NULL && info->doc[0] != '\0');
        cr_assert(info->n_args <= 3 && (info->n_args > 0 || info->rule == OP_RULE_RANDOM));
        cr_assert(info->n_results == 1 || info->n_results == 2);
        if (info->rule == OP_RULE_CAST)
            continue;
        cr_assert(eq(u32, op_row_find(info->name, strlen(info->name)), i), "%s", info->name);
        if (info->alias != NULL)
            cr_assert(eq(u32, op_row_find(info->alias, strlen(info->alias)), i), "%s", info->alias);
    }
}

Test(ops, what_is_not_there_is_not_found)
{
    cr_assert(eq(u32, op_row_find("sqr", 3), OP_N_ROWS));
    cr_assert(eq(u32, op_row_find("sqrt", 3), OP_N_ROWS));
    cr_assert(eq(u32, op_row_find("", 0), OP_N_ROWS));
    cr_assert(eq(u32, op_row_find("astype", 6), OP_N_ROWS));
    cr_assert(eq(u32, op_row_find("frexp exponent", 14), OP_N_ROWS));
}

/* "name=default, *, name, name=default", as Python writes a signature: those without a default come
 * first, or behind the star. */
static void check_keywords(const char *text)
{
    bool has_star = false, has_default = false;
    for (const char *at = text;; at += strspn(at, ", ")) {
        size_t n_name = strcspn(at, "=,"), n_value = strcspn(at + n_name, ",");
        bool is_star = n_name == 1 && *at == '*';
        cr_assert(n_name > 0 && strcspn(at, ", ") >= n_name, "%s", text);
        cr_assert(is_star ? !has_star : has_star || !has_default || n_value > 1, "%s", text);
        has_default |= n_value > 1;
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
    for (unsigned i = 0; i < OP_N_ROWS; i++) {
        const char *keywords = op_row_info(i)->keywords;
        if (keywords == NULL)
            continue;
        check_keywords(keywords);
        n++;
    }
    cr_assert(eq(u32, n, 62));
    cr_assert(eq(str, (char *)op_row_info(OP_ROW_ROUND)->keywords, (char *)"decimals=0"));
}

/* "a, q": one name for each that must be given, no two the same. */
Test(ops, arguments_have_all_a_name_or_none)
{
    for (unsigned i = 0; i < OP_N_ROWS; i++) {
        const char *text = op_arguments(i);
        char names[3][16] = {"", "", ""};
        if (text == NULL)
            continue;
        int n = sscanf(text, "%15[a-z], %15[a-z], %15[a-z]", names[0], names[1], names[2]);
        cr_assert(eq(int, n, op_row_info(i)->n_args), "%s", op_row_info(i)->name);
        cr_assert(ne(str, names[0], names[1]), "%s", op_row_info(i)->name);
    }
}

Test(ops, two_results_have_four_functions)
{
    for (unsigned i = 0; i < OP_N_ROWS; i++)
        cr_assert(eq(int, op_row_info(i)->n_results == 2,
                     i == OP_ROW_DIVMOD || i == OP_ROW_FREXP || i == OP_ROW_MODF ||
                         i == OP_ROW_HISTOGRAM));
}

static bool reduces(unsigned row)
{
    return op_rule_reduces(op_row_info(row)->rule);
}

Test(ops, reductions_are_those_over_axes)
{
    cr_assert(reduces(OP_ROW_STD) && reduces(OP_ROW_ARGMAX) && reduces(OP_ROW_ANY));
    cr_assert(reduces(OP_ROW_NORM));
    cr_assert(not(reduces(OP_ROW_NORMAL)));
    cr_assert(reduces(OP_ROW_SUM) && reduces(OP_ROW_MIN) && reduces(OP_ROW_MEAN));
    cr_assert(reduces(OP_ROW_COUNT_NONZERO));
    cr_assert(not(reduces(OP_ROW_MINIMUM)));
    cr_assert(not(reduces(OP_ROW_ADD)));
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
    for (unsigned i = 0; i < OP_N_ROWS; i++) {
        char text[64];
        snprintf(text, sizeof(text), "%s", op_dtypes(i));
        unsigned n_words = 0;
        for (char *rest = text, *word; (word = strsep(&rest, " ,"));) {
            bool is_known = strcmp(word, "bool") == 0 || strcmp(word, "int") == 0 ||
                            strcmp(word, "float") == 0 || strcmp(word, "but") == 0 ||
                            strcmp(word, "uint64") == 0 || word[0] == '\0';
            cr_assert(is_known, "%s: '%s'", op_row_info(i)->name, word);
            n_words += word[0] != '\0';
        }
        cr_assert(ge(uint, n_words, 1));
    }
    cr_assert(eq(str, (char *)op_dtypes(OP_ROW_SUBTRACT), "int float"));
    cr_assert(eq(str, (char *)op_dtypes(OP_ROW_BITWISE_AND), "bool int"));
}
