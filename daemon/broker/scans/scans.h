/* Shared scans: which files are decoded for whom, each by a process of its own. */
#pragma once

#include "proto/wire/message.h"

#include <stdbool.h>
#include <stdint.h>

struct broker;
struct request;
struct scan_reader;
struct session;

/* scan.join: two descriptors: the scan's description, an end of a socketpair. Answered when the
 * process has the latter, or refuses. */
int scans_join(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
/* The reader's session has gone. */
void scans_session_gone(struct scan_reader *reader);
/* In a session's list. */
struct scan_reader *scans_reader_of(struct list *session_link);

/* An array of maps: of all scans for root and the daemon's own user, of others those that they read
 * from. */
void scans_pack(msgpack_packer *p, const struct session *session);

/* Processes, and their readers. */
void scans_count(const struct broker *broker, uint64_t *ret_scans, uint64_t *ret_readers);

/* Ends all processes; sessions have gone. */
void scans_free(struct broker *broker);
