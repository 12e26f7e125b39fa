/* Plain questions to the daemon, each one request (byid.c). */
#pragma once

#include "client/lib/connection/client.h"

struct question {
    const char *method;
    bool is_of_a_job; /* or is about this daemon alone: another is not asked once more */
    unsigned n_numbers;
    struct {
        const char *key;
        uint64_t value;
    } numbers[2];
    const char *flag; /* a key whose value is true; NULL: none */
    const char *text; /* the value of `message`; NULL: none */
};

/* Waits as long as for a connection. ret_reply may be NULL; else it is to be freed. A status, also
 * for a client that is NULL, or -errno. */
int client_ask(struct gad_client *client, const struct question *question, struct reply **ret_reply,
               struct gad_error *error) GAD_MUST_CHECK;
/* One about all jobs of a user, or of everybody: GAD_EVERYBODY. */
struct question client_question_of_users(const char *method, uint32_t uid);
/* One whose only parameter is the job. */
int client_ask_of_job(struct gad_client *client, const char *method, uint64_t job,
                      struct reply **ret_reply, struct gad_error *error) GAD_MUST_CHECK;
