/* How many lines of the log each user may cause. Time is passed in, in nanoseconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LOG_LIMIT_USERS 64u

enum log_limit_kind { LOG_LIMIT_FAULTS, LOG_LIMIT_NOTES, LOG_LIMIT_N_KINDS };

struct log_limit_user {
    uint32_t uid;
    uint64_t used_ns;                      /* when it was asked about last; 0: nobody's place */
    double n_more[LOG_LIMIT_N_KINDS];      /* lines that may come now */
    uint64_t filled_ns[LOG_LIMIT_N_KINDS]; /* the time that n_more is of */
    uint64_t n_left_out;                   /* since it was told last */
};

struct log_limit {
    struct log_limit_user users[LOG_LIMIT_USERS];
    uint64_t n_left_out; /* of all users, ever */
    uint64_t n_untold;
};

/* Whether a line of this user may be written now; one that may not is counted. */
bool log_limit_allows(struct log_limit *limit, uint32_t uid, bool has_room,
                      enum log_limit_kind kind, uint64_t now_ns);

/* One user of whom lines were left out and not told yet, and how many; they are told with this.
 * False: of none. */
bool log_limit_untold(struct log_limit *limit, uint32_t *ret_uid, uint64_t *ret_n);
