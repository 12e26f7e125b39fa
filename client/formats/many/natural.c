/* Names are compared byte by byte, but digits that stand together are one number, of any length.
 * Where only leading zeros differ, the bytes decide, so that no two names are equal.
 *
 * Called by pattern.c.
 */
#include "client/formats/many/natural.h"

#include <stdbool.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t n_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* Steps over both numbers. */
static int compare_numbers(const char **a, const char **b)
{
    const char *one = *a + strspn(*a, "0"), *other = *b + strspn(*b, "0");
    size_t n = n_digits(one), n_other = n_digits(other);
    *a = one + n;
    *b = other + n_other;
    if (n != n_other)
        return n < n_other ? -1 : 1;
    return strncmp(one, other, n);
}

int natural_compare(const char *a, const char *b)
{
    const char *at = a, *other = b;
    while (*at && *other) {
        if (is_digit(*at) && is_digit(*other)) {
            int order = compare_numbers(&at, &other);
            if (order)
                return order;
        } else if (*at != *other) {
            return (unsigned char)*at < (unsigned char)*other ? -1 : 1;
        } else {
            at++;
            other++;
        }
    }
    if (*at || *other)
        return *at ? 1 : -1;
    return strcmp(a, b);
}
