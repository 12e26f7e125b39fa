/* Values as people write them.
 *
 * A unit that does not belong to the kind of value is a mistake, never ignored: `60M` is no time
 * and `32s` no size. Numbers are never negative, never wrap around, and have nothing before or
 * after them. Sizes are whole bytes; times may have a fraction.
 *
 * Called by the daemon's settings and by the command.
 */
#include "proto/system/units.h"
#include "proto/util.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_SECONDS 1e9
#define NS          UINT64_C(1000000000)

static const struct {
    const char *name;
    unsigned shift;
} size_units[] = {{"T", 40}, {"G", 30}, {"M", 20}, {"K", 10}};

static const struct {
    const char *name;
    double seconds;
} time_units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"min", 60}, {"h", 3600}};

static bool starts_as_number(const char *text)
{
    return isdigit((unsigned char)text[0]);
}

static bool parse_digits(const char *text, int base, uint64_t *ret, const char **ret_rest)
{
    char *end;
    if (!starts_as_number(text))
        return false;
    errno = 0;
    *ret = strtoull(text, &end, base);
    *ret_rest = end;
    return errno == 0;
}

bool units_parse_number(const char *text, int base, uint64_t *ret)
{
    uint64_t value;
    const char *rest;
    if (!parse_digits(text, base, &value, &rest) || *rest != '\0')
        return false;
    *ret = value;
    return true;
}

static bool find_shift(const char *unit, unsigned *ret_shift)
{
    *ret_shift = 0;
    if (unit[0] == '\0')
        return true;
    if (unit[1] != '\0' && strcmp(unit + 1, "iB") != 0)
        return false;
    for (unsigned i = 0; i < ARRAY_LENGTH(size_units); i++) {
        if (toupper((unsigned char)unit[0]) == size_units[i].name[0]) {
            *ret_shift = size_units[i].shift;
            return true;
        }
    }
    return false;
}

bool units_parse_size(const char *text, uint64_t *ret_bytes)
{
    uint64_t value;
    const char *unit;
    unsigned shift;
    if (!parse_digits(text, 10, &value, &unit) || !find_shift(unit, &shift) ||
        value > (UINT64_MAX >> 1) >> shift)
        return false;
    *ret_bytes = value << shift;
    return true;
}

bool units_parse_share(const char *text, uint64_t whole, uint64_t *ret)
{
    uint64_t percent;
    const char *rest;
    if (!parse_digits(text, 10, &percent, &rest) || strcmp(rest, "%") != 0 || percent > 100)
        return false;
    *ret = whole / 100 * percent;
    return true;
}

bool units_parse_seconds(const char *text, uint64_t *ret_ns)
{
    char *unit;
    if (!starts_as_number(text) || strncmp(text, "0x", 2) == 0 || strncmp(text, "0X", 2) == 0)
        return false;
    double value = strtod(text, &unit);
    for (unsigned i = 0; i < ARRAY_LENGTH(time_units); i++) {
        double seconds = value * time_units[i].seconds;
        if (strcmp(unit, time_units[i].name) == 0 && isfinite(value) && seconds <= MAX_SECONDS) {
            *ret_ns = (uint64_t)(seconds * 1e9 + 0.5);
            return true;
        }
    }
    return false;
}

void units_format_size(uint64_t n_bytes, char *text, size_t n_text_bytes)
{
    for (unsigned i = 0; i < ARRAY_LENGTH(size_units); i++) {
        uint64_t unit = UINT64_C(1) << size_units[i].shift;
        if (n_bytes >= unit && n_bytes % unit == 0) {
            snprintf(text, n_text_bytes, "%llu%s", (unsigned long long)(n_bytes / unit),
                     size_units[i].name);
            return;
        }
    }
    snprintf(text, n_text_bytes, "%llu", (unsigned long long)n_bytes);
}

void units_format_seconds(uint64_t ns, char *text, size_t n_text_bytes)
{
    int n = snprintf(text, n_text_bytes, "%llu.%09llu", (unsigned long long)(ns / NS),
                     (unsigned long long)(ns % NS));
    if (n <= 0 || (size_t)n >= n_text_bytes)
        return;
    while (text[n - 1] == '0')
        text[--n] = '\0';
    if (text[n - 1] == '.')
        text[n - 1] = '\0';
}

uint64_t units_memory_bytes(void)
{
    long n_pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return n_pages > 0 && page_bytes > 0 ? (uint64_t)n_pages * (uint64_t)page_bytes
                                         : UINT64_C(2) << 30;
}
