/* server.users: who is there, and what each holds and may hold. */
#pragma once

#include "daemon/broker/numbers/info.h"

info_reply users_reply;
uint64_t users_most_bytes(const struct broker *broker); /* of the reply, about */
