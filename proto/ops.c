/* The op catalogue as a table, and looking things up in it.
 *
 * The table is small and looked at only while an expression is compiled: a linear search does.
 * Suggestions are for people who mistype: the nearest name by edit distance, where swapping two
 * neighbours is one edit, at most two edits away and one for names of three characters or less
 * (any three letters are two edits from `sin`). Of equally near ones a name of the same length
 * wins: `tahn` is tanh with two letters swapped, rather than tan with one too many.
 */
#include "proto/ops.h"

#include "proto/dtype.h"
#include "proto/util.h"

#include <string.h>

static const struct op_info infos[OP_N_ROWS] = {
#define OP(id, name, symbol, alias, n_args, n_results, keywords, rule, doc)                        \
    [OP_ROW_##id] = {name, symbol, alias, n_args, n_results, keywords, rule, doc},
#include "proto/ops.def"
#undef OP
};

const struct op_info *op_row_info(unsigned row)
{
    return &infos[row];
}

static bool is_name(const char *name, const char *text, size_t n_chars)
{
    return name != NULL && n_chars > 0 && name[0] == text[0] && strlen(name) == n_chars &&
           memcmp(name, text, n_chars) == 0;
}

unsigned op_row_find(const char *name, size_t n_chars)
{
    for (unsigned i = 0; i < OP_N_ROWS; i++)
        if (infos[i].rule != OP_RULE_CAST &&
            (is_name(infos[i].name, name, n_chars) || is_name(infos[i].alias, name, n_chars)))
            return i;
    return OP_N_ROWS;
}

const char *op_dtypes(unsigned row)
{
    switch (infos[row].rule) {
    case OP_RULE_ARITHMETIC:
        if (row == OP_ROW_SUBTRACT || row == OP_ROW_NEGATIVE || row == OP_ROW_POSITIVE ||
            row == OP_ROW_SIGN)
            return "int float";
        break;
    case OP_RULE_BITWISE:
    case OP_RULE_SHIFT:
    case OP_RULE_BINCOUNT:
    case OP_RULE_BITCOUNT: return "bool int";
    case OP_RULE_INTEGER:
    case OP_RULE_RANDOM_INTEGERS:
    case OP_RULE_INDEX: return "int";
    case OP_RULE_EXTREMUM:
        if (row == OP_ROW_PTP)
            return "int float";
        break;
    case OP_RULE_LDEXP: return "bool int float, bool int but uint64";
    case OP_RULE_TABLE:
        if (row == OP_ROW_TAKE)
            return "bool int float, bool int";
        break;
    case OP_RULE_QUANTILE:
        if (infos[row].n_args == 2)
            return "int float";
        break;
    case OP_RULE_SELECT: return "bool, bool int float";
    case OP_RULE_TENSORDOT: return "float";
    default: break;
    }
    return "bool int float";
}

int op_rule_reduces(enum op_rule rule)
{
    switch (rule) {
    case OP_RULE_SUM:
    case OP_RULE_EXTREMUM:
    case OP_RULE_MEAN:
    case OP_RULE_COUNT:
    case OP_RULE_ARGUMENT:
    case OP_RULE_VARIANCE:
    case OP_RULE_TRUTH:
    case OP_RULE_NORM:
    case OP_RULE_LOGSUMEXP: return 1;
    default: return 0;
    }
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

/* Optimal string alignment: insert, delete, replace, swap of neighbours. Rows of the usual table,
 * three of them kept. */
unsigned op_name_distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    unsigned rows[3][OP_NAME_MAX_CHARS + 1];
    for (size_t j = 0; j <= n_b; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= n_a; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= n_b; j++) {
            unsigned differs = a[i - 1] != b[j - 1];
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + differs);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                above2[j - 2] + 1 < row[j])
                row[j] = above2[j - 2] + 1;
        }
    }
    return rows[n_a % 3][n_b];
}

struct suggestion {
    const char *text;
    size_t n_chars;
    const char *best;
    unsigned best_distance;
};

static void consider(struct suggestion *s, const char *name)
{
    if (name == NULL || strlen(name) > OP_NAME_MAX_CHARS)
        return;
    unsigned distance = op_name_distance(s->text, s->n_chars, name, strlen(name));
    bool has_other_length = s->best != NULL && strlen(s->best) != s->n_chars;
    if (distance < s->best_distance ||
        (distance == s->best_distance && has_other_length && strlen(name) == s->n_chars)) {
        s->best = name;
        s->best_distance = distance;
    }
}

const char *op_suggest(const char *name, size_t n_chars)
{
    if (n_chars == 0 || n_chars > OP_NAME_MAX_CHARS)
        return NULL;
    /* What other languages call them. */
    static const char *const others[][2] = {{"average", "mean"}, {"avg", "mean"},
                                            {"ln", "log"},       {"stddev", "std"},
                                            {"stdev", "std"},    {"variance", "var"}};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strlen(others[i][0]) == n_chars && memcmp(others[i][0], name, n_chars) == 0)
            return others[i][1];
    struct suggestion s = {.text = name, .n_chars = n_chars, .best_distance = n_chars <= 3 ? 2 : 3};
    for (unsigned i = 0; i < OP_N_ROWS; i++) {
        if (infos[i].rule == OP_RULE_CAST)
            continue;
        consider(&s, infos[i].name);
        consider(&s, infos[i].alias);
    }
    for (int i = 0; i < DTYPE_COUNT; i++)
        consider(&s, dtype_name((enum dtype)i));
    return s.best;
}

/* By NumPy's names its own functions take their arguments: people write quantile(a, q=0.5). Its
 * ufuncs take their operands by position only, and so do where, matmul and bincount. Functions that
 * NumPy has not got use the names of SciPy's, or of NumPy's generators. */
const char *op_arguments(unsigned row)
{
    switch (row) {
    case OP_ROW_SELECT: return "condlist, choicelist";
    case OP_ROW_TENSORDOT:
    case OP_ROW_ISCLOSE: return "a, b";
    case OP_ROW_SEARCHSORTED: return "a, v";
    case OP_ROW_DIGITIZE: return "x, bins";
    case OP_ROW_TAKE: return "a, indices";
    case OP_ROW_INDEX: return "axis";
    case OP_ROW_BERNOULLI: return "p";
    case OP_ROW_INTEGERS: return "low";
    case OP_ROW_PERMUTATION:
    case OP_ROW_NORM:
    case OP_ROW_SINC:
    case OP_ROW_NAN_TO_NUM:
    case OP_ROW_ISPOSINF:
    case OP_ROW_ISNEGINF: return "x";
    case OP_ROW_CHOICE:
    case OP_ROW_CLIP:
    case OP_ROW_ROUND: return "a";
    default: break;
    }
    if (op_row_info(row)->rule == OP_RULE_QUANTILE && op_row_info(row)->n_args == 2)
        return "a, q";
    if (op_rule_reduces(op_row_info(row)->rule))
        return "a";
    switch (op_row_info(row)->rule) {
    case OP_RULE_QUANTILE:
    case OP_RULE_SCAN:
    case OP_RULE_HISTOGRAM: return "a";
    default: return NULL;
    }
}
