/* server.stats: what the daemon has done so far and what it does now, for everybody to see. */
#pragma once

#include "daemon/broker/numbers/info.h"

#define STATS_MAX_USERS   896u
#define STATS_MAX_JOBS    1024u
#define STATS_MAX_WAITING 8u /* requests of a user, not answered yet: they come at once */

struct broker;

info_reply stats_reply;
uint64_t stats_most_bytes(const struct broker *broker); /* of a reply, about */
