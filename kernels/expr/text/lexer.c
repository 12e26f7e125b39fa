/* Characters to tokens, one at a time.
 *
 * The tokens are Python's, as far as an expression over arrays needs them: names, numbers (decimal
 * and 0x 0o 0b integers, floats with exponents, underscores between digits, a j behind), words in
 * quotes, operators, parentheses, brackets and semicolons. What people type out of habit (`&&`,
 * `x!`) gets an answer that says what to write. Nothing depends on the locale: the slow path of
 * strtod() never sees a decimal point.
 *
 * Called by the parser alone. The text is not NUL-terminated and may hold any bytes.
 */
#include "kernels/expr/text/parser.h"

#include <stdio.h>

#define MAX_DIGITS 256 /* of one number */

static bool is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

static bool is_name_char(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_' || is_digit(ch);
}

static char char_at(const struct compiler *c, uint32_t at)
{
    return at < c->n_chars ? c->text[at] : '\0';
}

static int digit_value(char ch)
{
    if (is_digit(ch))
        return ch - '0';
    if (ch >= 'a' && ch <= 'f')
        return ch - 'a' + 10;
    if (ch >= 'A' && ch <= 'F')
        return ch - 'A' + 10;
    return 99;
}

struct digits {
    char chars[MAX_DIGITS + 16]; /* room for "e-100000" and the NUL */
    unsigned n;
};

/* Digits of `base` from *at on, single underscores between them; adds them to `digits`. */
static int take_digits(struct compiler *c, uint32_t *at, int base, struct digits *digits)
{
    for (;;) {
        char ch = char_at(c, *at);
        if (ch == '_' && *at > 0 && digit_value(c->text[*at - 1]) < base &&
            digit_value(char_at(c, *at + 1)) < base)
            ch = char_at(c, ++*at);
        if (digit_value(ch) >= base)
            return 0;
        if (digits->n == MAX_DIGITS)
            return compiler_fail(c, GAD_LIMIT_EXCEEDED, *at + 1, "a number of more than %d digits",
                                 MAX_DIGITS);
        digits->chars[digits->n++] = ch;
        ++*at;
    }
}

static int finish_integer(struct compiler *c, uint32_t start, const struct digits *digits, int base,
                          struct value *ret)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < digits->n; i++) {
        if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit_value(digits->chars[i]), &value))
            return compiler_fail(
                c, GAD_BAD_EXPRESSION, start + 1,
                "an integer that does not fit 64 bits; write it as a float (1e30)");
    }
    *ret = (struct value){.kind = VALUE_INTEGER, .integer = value};
    return 0;
}

/* digits x 10^exponent, correctly rounded: exact operands and one operation where that is enough.
 */
static double decimal_value(struct digits *digits, int exponent)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (digits->n <= 15 && exponent >= -22 && exponent <= 22) {
        int64_t mantissa = 0;
        for (unsigned i = 0; i < digits->n; i++)
            mantissa = mantissa * 10 + (digits->chars[i] - '0');
        return exponent < 0 ? (double)mantissa / powers[-exponent]
                            : (double)mantissa * powers[exponent];
    }
    snprintf(digits->chars + digits->n, sizeof(digits->chars) - digits->n, "e%d", exponent);
    return strtod(digits->chars, NULL);
}

/* The exponent after "e" or "E", if there is one. */
static void take_exponent(struct compiler *c, uint32_t *at, bool *ret_is_float, int *exponent)
{
    uint32_t p = *at + 1;
    if (char_at(c, *at) != 'e' && char_at(c, *at) != 'E')
        return;
    bool is_negative = char_at(c, p) == '-';
    if (char_at(c, p) == '-' || char_at(c, p) == '+')
        p++;
    if (!is_digit(char_at(c, p)))
        return;
    int value = 0;
    for (; is_digit(char_at(c, p)) || (char_at(c, p) == '_' && is_digit(char_at(c, p + 1))); p++)
        if (is_digit(char_at(c, p)) && value < 90000)
            value = value * 10 + (char_at(c, p) - '0');
    *exponent += is_negative ? -value : value;
    *ret_is_float = true;
    *at = p;
}

static int check_number_ends(struct compiler *c, uint32_t at)
{
    char ch = char_at(c, at);
    if (is_name_char(ch) || ch == '.')
        return compiler_fail(c, GAD_BAD_EXPRESSION, at + 1,
                             "'%c' right after a number; is an operator missing?", ch);
    return 0;
}

static int lex_prefixed(struct compiler *c, uint32_t start, int base, struct token *ret)
{
    struct digits digits = {.n = 0};
    uint32_t at = start + 2 + (char_at(c, start + 2) == '_');
    int r = take_digits(c, &at, base, &digits);
    if (r)
        return r;
    if (digits.n == 0)
        return compiler_fail(c, GAD_BAD_EXPRESSION, start + 1, "digits expected after '%.2s'",
                             c->text + start);
    r = finish_integer(c, start, &digits, base, &ret->value);
    if (r == 0)
        r = check_number_ends(c, at);
    ret->n_chars = at - start;
    return r;
}

static int make_imaginary(struct compiler *c, struct value *value)
{
    struct value *parts = arena_take(&c->arena, 2 * sizeof(*parts));
    if (parts == NULL)
        return compiler_no_memory(c);
    parts[0] = (struct value){.kind = VALUE_FLOAT};
    parts[1] = *value;
    *value = (struct value){.kind = VALUE_COMPLEX, .parts = parts};
    return 0;
}

static int lex_number(struct compiler *c, uint32_t start, struct token *ret)
{
    ret->kind = TOKEN_NUMBER;
    char second = char_at(c, start + 1) | 0x20;
    if (c->text[start] == '0' && (second == 'x' || second == 'o' || second == 'b'))
        return lex_prefixed(c, start, second == 'x' ? 16 : second == 'o' ? 8 : 2, ret);

    struct digits digits;
    digits.n = 0;
    uint32_t at = start;
    bool is_float = false;
    int exponent = 0;
    int r = take_digits(c, &at, 10, &digits);
    if (r == 0 && char_at(c, at) == '.') {
        unsigned n_whole = digits.n;
        is_float = true;
        at++;
        if (is_digit(char_at(c, at)))
            r = take_digits(c, &at, 10, &digits);
        exponent = (int)n_whole - (int)digits.n;
    }
    if (r)
        return r;
    take_exponent(c, &at, &is_float, &exponent);
    bool is_imaginary = char_at(c, at) == 'j' || char_at(c, at) == 'J';
    at += is_imaginary;
    ret->n_chars = at - start;
    r = check_number_ends(c, at);
    if (r)
        return r;
    if (is_float || is_imaginary) {
        ret->value = (struct value){.kind = VALUE_FLOAT};
        ret->value.number = decimal_value(&digits, exponent);
        return is_imaginary ? make_imaginary(c, &ret->value) : 0;
    }
    r = finish_integer(c, start, &digits, 10, &ret->value);
    if (r == 0 && digits.chars[0] == '0' && ret->value.integer != 0)
        return compiler_fail(c, GAD_BAD_EXPRESSION, start + 1,
                             "an integer with leading zeros; write 0o17 if it is octal");
    return r;
}

static int unexpected_character(struct compiler *c, uint32_t at)
{
    unsigned char ch = (unsigned char)c->text[at];
    const char *hint = ch == '!' ? "; write ~x for not" : "";
    if (ch > ' ' && ch < 0x7f)
        return compiler_fail(c, GAD_BAD_EXPRESSION, at + 1, "unexpected '%c'%s", ch, hint);
    return compiler_fail(c, GAD_BAD_EXPRESSION, at + 1, "unexpected byte 0x%02x", ch);
}

/* A word in quotes. */
static int lex_string(struct compiler *c, uint32_t start, struct token *ret)
{
    uint32_t at = start + 1;
    while (at < c->n_chars && c->text[at] != c->text[start] && c->text[at] != '\n')
        at++;
    if (char_at(c, at) != c->text[start])
        return compiler_fail(c, GAD_BAD_EXPRESSION, start + 1, "this quote is not closed");
    ret->kind = TOKEN_STRING;
    ret->n_chars = at + 1 - start;
    return 0;
}

static int lex_operator(struct compiler *c, uint32_t at, struct token *ret)
{
    char ch = c->text[at], second = char_at(c, at + 1);
    bool is_double = second == ch;
    enum op op = OP_COUNT;
    unsigned n_chars = 1;
    switch (ch) {
    case '+': op = OP_ADD; break;
    case '-': op = OP_SUBTRACT; break;
    case '%': op = OP_REMAINDER; break;
    case '@': op = OP_MATMUL; break;
    case '^': op = OP_BITWISE_XOR; break;
    case '~': op = OP_INVERT; break;
    case '*':
        op = is_double ? OP_POWER : OP_MULTIPLY;
        n_chars += is_double;
        break;
    case '/':
        op = is_double ? OP_FLOOR_DIVIDE : OP_DIVIDE;
        n_chars += is_double;
        break;
    case '&':
    case '|':
        if (is_double)
            return compiler_fail(c, GAD_BAD_EXPRESSION, at + 1,
                                 "'%c%c' is not an operator; write %c", ch, ch, ch);
        op = ch == '&' ? OP_BITWISE_AND : OP_BITWISE_OR;
        break;
    case '<':
    case '>':
        op = ch == '<' ? OP_LESS : OP_GREATER;
        if (is_double)
            op = ch == '<' ? OP_LEFT_SHIFT : OP_RIGHT_SHIFT;
        else if (second == '=')
            op = ch == '<' ? OP_LESS_EQUAL : OP_GREATER_EQUAL;
        n_chars += is_double || second == '=';
        break;
    case '=':
        op = OP_EQUAL;
        n_chars += is_double;
        if (!is_double)
            ret->kind = TOKEN_ASSIGN;
        break;
    case '!':
        if (second != '=')
            return unexpected_character(c, at);
        op = OP_NOT_EQUAL;
        n_chars = 2;
        break;
    default: return unexpected_character(c, at);
    }
    ret->op = (uint16_t)op;
    ret->n_chars = n_chars;
    return 0;
}

int lexer_next(struct compiler *c, uint32_t at, struct token *ret)
{
    char ch = char_at(c, at);
    while (at < c->n_chars && (ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r'))
        ch = char_at(c, ++at);
    ret->start = at;
    ret->n_chars = 1;
    if (at >= c->n_chars) {
        ret->kind = TOKEN_END;
        ret->n_chars = 0;
        return 0;
    }
    if (is_digit(ch) || (ch == '.' && is_digit(char_at(c, at + 1))))
        return lex_number(c, at, ret);
    if (is_name_char(ch)) {
        uint32_t end = at + 1;
        while (is_name_char(char_at(c, end)))
            end++;
        ret->kind = TOKEN_NAME;
        ret->n_chars = end - at;
        return 0;
    }
    switch (ch) {
    case '(': ret->kind = TOKEN_OPEN; return 0;
    case ')': ret->kind = TOKEN_CLOSE; return 0;
    case '[': ret->kind = TOKEN_LIST_OPEN; return 0;
    case ']': ret->kind = TOKEN_LIST_CLOSE; return 0;
    case ',': ret->kind = TOKEN_COMMA; return 0;
    case '.': ret->kind = TOKEN_DOT; return 0;
    case ';': ret->kind = TOKEN_SEMICOLON; return 0;
    case '\'':
    case '"': return lex_string(c, at, ret);
    default: ret->kind = TOKEN_OPERATOR; return lex_operator(c, at, ret);
    }
}
