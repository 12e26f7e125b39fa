/* The log: one line to stderr, never waiting for whoever reads it. A file that logs defines
 * LOG_TOPIC before it includes this. Levels by volume: error: someone must act; warn: a peer's
 * fault; info: per session, and once for each job, when it ends; debug: more per job. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

struct log_fields {
    uint64_t job; /* 0: none */
    bool has_uid;
    uint32_t uid;
    const char *more; /* "CODE=ok ENGINE=cpu": goes behind the others; or NULL */
};

/* Where lines go from now on, and nobody has written any. `fd` stays the caller's and must stay
 * open. */
void log_open(int fd, enum log_level level);
void log_close(void);

void log_set_level(enum log_level level);
bool log_level_from_name(const char *name, enum log_level *ret_level);
bool log_is_on(enum log_level level);

/* The line as it would be written, for log_write() and its test; returns its length. */
size_t log_format(char *buffer, size_t n_bytes, bool has_priority, enum log_level level,
                  const char *topic, const struct log_fields *fields, const char *text);

void log_write(enum log_level level, const char *topic, const struct log_fields *fields,
               const char *format, ...) GAD_PRINTF(4, 5);

/* The two halves of it, for a line that is costly to make: whether it may be written, which counts
 * it for its user; and writing it. */
bool log_may_write(enum log_level level, const struct log_fields *fields);
void log_put(enum log_level level, const char *topic, const struct log_fields *fields,
             const char *format, ...) GAD_PRINTF(4, 5);

/* The lines that found no room so far; those that were more than their user may have. */
uint64_t log_n_dropped(void);
uint64_t log_n_left_out(void);

/* Asked before each line with a user's number, but for debug, and where it may be written counts
 * it. */
typedef bool log_account(void *userdata, uint32_t uid);
void log_set_account(log_account *func, void *userdata); /* NULL: none is asked */

/* Whether lines were left out that log_report() has not told yet: one line for each user. */
bool log_has_untold(void);
void log_report(void);

#define LOG_JOB(job_id, user_id)                                                                   \
    (&(const struct log_fields){.job = (job_id), .has_uid = true, .uid = (user_id)})
#define LOG_UID(user_id) (&(const struct log_fields){.has_uid = true, .uid = (user_id)})

#define log_at(level, fields, ...)                                                                 \
    (log_is_on(level) ? log_write(level, LOG_TOPIC, fields, __VA_ARGS__) : (void)0)
#define log_error(fields, ...) log_at(LOG_LEVEL_ERROR, fields, __VA_ARGS__)
#define log_warn(fields, ...)  log_at(LOG_LEVEL_WARN, fields, __VA_ARGS__)
#define log_info(fields, ...)  log_at(LOG_LEVEL_INFO, fields, __VA_ARGS__)
#define log_debug(fields, ...) log_at(LOG_LEVEL_DEBUG, fields, __VA_ARGS__)
