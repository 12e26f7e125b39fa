/* The nearest names by edit distance.
 *
 * Called by the formats whose files have several arrays.
 */
#include "client/formats/near_names.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_SHOWN    6
#define DISTANCE_MAX 48 /* characters of a name that are compared */
#define NEAR         3  /* at this distance it may have been meant */

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Edit distance without regard to case. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[DISTANCE_MAX + 1];
    size_t n_a = strnlen(a, DISTANCE_MAX), n_b = strnlen(b, DISTANCE_MAX);
    for (size_t i = 0; i <= n_b; i++)
        row[i] = (unsigned)i;
    for (size_t i = 1; i <= n_a; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t k = 1; k <= n_b; k++) {
            unsigned differs = strncasecmp(a + i - 1, b + k - 1, 1) != 0;
            unsigned next = min3(row[k] + 1, row[k - 1] + 1, diagonal + differs);
            diagonal = row[k];
            row[k] = next;
        }
    }
    return row[n_b];
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void near_names_add(struct near_names *names, const char *name)
{
    unsigned rank = distance(last_part(names->wanted), last_part(name));
    if (rank > NEAR)
        rank = UINT32_MAX;
    if (names->n == NEAR_MAX_NAMES) {
        names->is_cut = true;
        if (rank >= names->found[NEAR_MAX_NAMES - 1].rank)
            return;
        names->n--;
    }
    unsigned at = names->n++;
    for (; at > 0 && names->found[at - 1].rank > rank; at--)
        names->found[at] = names->found[at - 1];
    struct near_name *found = &names->found[at];
    found->rank = rank;
    snprintf(found->name, sizeof(found->name), "%.*s", NEAR_NAME_BYTES - 1, name);
}

const char *near_names_text(const struct near_names *names, char *buffer, size_t n_bytes)
{
    size_t used = 0;
    *buffer = '\0';
    for (unsigned i = 0; i < names->n; i++) {
        const char *name = names->found[i].name;
        bool fits = i < MAX_SHOWN && used + strlen(name) + 12 < n_bytes;
        int n = fits ? snprintf(buffer + used, n_bytes - used, "%s'%s'", i ? ", " : "", name)
                     : snprintf(buffer + used, n_bytes - used, "%s...", i ? ", " : "");
        used += (size_t)n;
        if (!fits || used >= n_bytes)
            return buffer;
    }
    if (names->is_cut && names->n && used + 6 < n_bytes)
        snprintf(buffer + used, n_bytes - used, ", ...");
    return buffer;
}

int near_names_error(const struct near_names *names, const char *kind, const char *name,
                     struct gad_error *error)
{
    char list[NEAR_TEXT_BYTES];
    near_names_text(names, list, sizeof(list));
    error_set(error, GAD_NOT_FOUND, name, "no %s '%.80s'%s%s", kind, names->wanted,
              *list ? "; there are " : "; the file has none", list);
    error_expected(error, "%s", list);
    error_found(error, "'%.100s'", names->wanted);
    return GAD_NOT_FOUND;
}
