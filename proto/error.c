/* Errors: the table of words, and filling a struct gad_error.
 *
 * Everybody calls this. The words come from the one table in gpuarrayd-status.h; what a peer wrote
 * may be quoted in the texts, so every field is made printable UTF-8 after it was formatted, and
 * is cut, never overrun, when it is too long. `error` may be NULL everywhere: the caller then
 * wants only the status.
 */
#include "proto/error.h"

#include "proto/text.h"
#include "proto/util.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *word, *text;
} statuses[GAD_STATUS_COUNT] = {[GAD_OK] = {"ok", "it worked"},
#define STATUS_ROW(id, word, text) [id] = {word, text},
                                GAD_STATUS_TABLE(STATUS_ROW)
#undef STATUS_ROW
};

static void GAD_PRINTF(3, 0)
    fill(char *field, size_t n_bytes, const char *format, va_list arguments)
{
    vsnprintf(field, n_bytes, format, arguments);
    text_make_printable(field);
}

int error_set(struct gad_error *error, enum gad_status status, const char *argument,
              const char *format, ...)
{
    if (error == NULL)
        return (int)status;
    /* Through a copy: `argument` and the texts to be quoted may lie in *error itself. */
    struct gad_error fresh = {.status = status};
    snprintf(fresh.argument, sizeof(fresh.argument), "%s", argument ? argument : "");
    text_make_printable(fresh.argument);
    va_list arguments;
    va_start(arguments, format);
    fill(fresh.message, sizeof(fresh.message), format, arguments);
    va_end(arguments);
    *error = fresh;
    return (int)status;
}

void error_expected(struct gad_error *error, const char *format, ...)
{
    if (error == NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    fill(error->expected, sizeof(error->expected), format, arguments);
    va_end(arguments);
}

void error_found(struct gad_error *error, const char *format, ...)
{
    if (error == NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    fill(error->found, sizeof(error->found), format, arguments);
    va_end(arguments);
}

static enum gad_status status_of_errno(int error_number)
{
    switch (error_number) {
    case ENOSPC:
    case EDQUOT: return GAD_NO_SPACE;
    case EACCES:
    case EPERM: return GAD_PERMISSION;
    case ENOENT: return GAD_NOT_FOUND;
    case ENOMEM: return GAD_NO_MEMORY;
    case EROFS:
    case EBADF: return GAD_READ_ONLY;
    default: return GAD_IO_ERROR;
    }
}

int error_from_errno(struct gad_error *error, int error_number, const char *argument,
                     const char *what)
{
    char buffer[128];
    const char *text = strerror_r(error_number, buffer, sizeof(buffer));
    return error_set(error, status_of_errno(error_number), argument, "%s: %s", what, text);
}

static bool is_known(int status)
{
    return status >= 0 && status < GAD_STATUS_COUNT && statuses[status].word != NULL;
}

const char *error_word(int status)
{
    return statuses[is_known(status) ? status : GAD_INTERNAL].word;
}

const char *error_text(int status)
{
    return statuses[is_known(status) ? status : GAD_INTERNAL].text;
}

enum gad_status error_from_word(const char *word, unsigned n_chars)
{
    for (int i = GAD_OK + 1; i < GAD_STATUS_COUNT; i++)
        if (strlen(statuses[i].word) == n_chars && memcmp(statuses[i].word, word, n_chars) == 0)
            return (enum gad_status)i;
    return GAD_INTERNAL;
}
