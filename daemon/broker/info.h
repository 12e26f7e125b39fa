/* server.info and server.ops. */
#pragma once

#include "proto/message.h"

struct broker;
struct session;

struct stats_wait;

int info_request(struct session *session, uint32_t id) GAD_MUST_CHECK;
void info_stats_arrived(struct stats_wait *wait, const struct message *message);
void info_worker_lost(struct broker *broker);
void info_session_gone(struct session *session);
void info_pack_ops(msgpack_packer *packer);
