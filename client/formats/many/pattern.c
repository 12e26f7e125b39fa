/* Expanding patterns.
 *
 * glob() finds the names; a folder that cannot be read is an error here, since an array without
 * some of its files would be wrong and look right. Backslashes are ordinary characters: a wildcard
 * that is meant as it is stands in brackets, `[*]`, or is in the name of a file that is there.
 *
 * Called by many.c.
 */
#include "client/formats/many/pattern.h"
#include "client/formats/files/file_source.h"
#include "client/formats/many/natural.h"
#include "proto/util.h"

#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#define WILDCARDS  "*?["
#define MAX_SHOWN  3 /* names beside a pattern that nothing matches */
#define SHOW_CHARS 40

bool pattern_is(const char *path)
{
    struct stat st;
    return strpbrk(path, WILDCARDS) && lstat(path, &st) < 0;
}

/* glob() hands nothing of its caller's to on_refused(). */
static _Thread_local struct {
    int error_number;
    char path[256];
} refused;

static int on_refused(const char *path, int error_number)
{
    if (error_number == ENOENT)
        return 0;
    refused.error_number = error_number;
    snprintf(refused.path, sizeof(refused.path), "%s", path);
    return 1;
}

static int by_nature(const void *a, const void *b)
{
    return natural_compare(*(char *const *)a, *(char *const *)b);
}

/* What is in the folder instead; `buffer` stays as it is where that cannot be said. */
static void show_folder(const char *path, char *buffer, size_t n_bytes)
{
    const char *slash = strrchr(path, '/');
    size_t n_chars = slash ? (size_t)(slash - path) + 1 : 0, used = 0, n = 0;
    _cleanup_free_ char *folder = n_chars > 0 ? strndup(path, n_chars) : strdup(".");
    if (!folder || strpbrk(folder, WILDCARDS))
        return;
    DIR *dir = opendir(folder);
    if (!dir) {
        snprintf(buffer, n_bytes, "no folder '%.100s'", folder);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (*entry->d_name == '.')
            continue;
        if (n++ < MAX_SHOWN && used < n_bytes)
            used += (size_t)snprintf(buffer + used, n_bytes - used, "%s%.*s", n > 1 ? ", " : "",
                                     SHOW_CHARS, entry->d_name);
    }
    closedir(dir);
    if (n == 0)
        snprintf(buffer, n_bytes, "nothing in the folder");
    else if (n > MAX_SHOWN && used < n_bytes)
        snprintf(buffer + used, n_bytes - used, " and %zu more", n - MAX_SHOWN);
}

static int no_match_error(const char *path, const char *name, struct gad_error *error)
{
    char found[160] = "none";
    show_folder(path, found, sizeof(found));
    error_set(error, GAD_NOT_FOUND, name, "no file matches '%.200s'", path);
    error_expected(error, "at least one file that matches");
    error_found(error, "%s", found);
    return GAD_NOT_FOUND;
}

int pattern_expand(const char *path, const char *name, struct pattern_match *ret_match,
                   struct gad_error *error)
{
    glob_t found;
    int r = glob(path, GLOB_NOSORT | GLOB_NOESCAPE, on_refused, &found);
    if (r == GLOB_NOMATCH)
        return no_match_error(path, name, error);
    if (r == GLOB_ABORTED) {
        globfree(&found);
        return file_path_error(error, refused.error_number, refused.path, name);
    }
    if (r)
        return error_from_errno(error, ENOMEM, name, "the files of a pattern");
    struct pattern_match match = {.paths = calloc(found.gl_pathc, sizeof(*match.paths))};
    for (; match.paths && match.n < found.gl_pathc; match.n++)
        if (!(match.paths[match.n] = strdup(found.gl_pathv[match.n])))
            break;
    bool is_whole = match.paths && match.n == found.gl_pathc;
    globfree(&found);
    if (!is_whole) {
        pattern_match_deinit(&match);
        return error_from_errno(error, ENOMEM, name, "the files of a pattern");
    }
    qsort(match.paths, match.n, sizeof(*match.paths), by_nature);
    *ret_match = match;
    return 0;
}

void pattern_match_deinit(struct pattern_match *match)
{
    for (size_t i = 0; i < match->n; i++)
        free(match->paths[i]);
    free(steal_ptr(match->paths));
    match->n = 0;
}
