/* Jobs that the broker has started and the main thread has not come to: it compiles and plans each,
 * and runs small ones itself, so whoever asks for many keeps it busy. Users take turns, by the time
 * that theirs took; a user's own jobs go by priority, then in order. */
#pragma once

#include "daemon/worker/jobs/wjob.h"

struct start { /* of one job.start */
    struct frame frame;
    struct message message;
    struct wjob_identity identity;
    uint64_t received_ns;
    struct start *next;
};

struct starts;

int starts_new(struct starts **ret_starts) GAD_MUST_CHECK; /* -ENOMEM */
struct starts *starts_free(struct starts *s);              /* NULL */

/* Takes what is in *frame and *message, unless it fails: bad-request, -ENOMEM. */
int starts_add(struct starts *s, struct frame *frame, struct message *message,
               struct gad_error *error) GAD_MUST_CHECK;
bool starts_are_empty(const struct starts *s);
/* Who is next; the caller's, for start_free(). NULL: there is none. */
struct start *starts_next(struct starts *s);
/* What it took counts for its user, as long as anybody waits; once for each that was next, before
 * anything is added or taken. */
void starts_charge(struct starts *s, const struct wjob_identity *identity, double seconds);
/* The one of this job begins paused, or not; false: there is none. */
bool starts_pause(struct starts *s, uint64_t job_id, bool is_paused);
/* The user's starts count so much from now on. */
void starts_set_weight(struct starts *s, uint32_t user, uint32_t weight);
/* The one of this job, the caller's then; NULL: there is none. */
struct start *starts_take(struct starts *s, uint64_t job_id);
struct start *start_free(struct start *start); /* NULL */
