/* Between session.c, session_send.c and session_waiting.c. */
#pragma once

#include "daemon/broker/sessions/session.h"

#define SESSION_USER_TURN_NS UINT64_C(250000) /* of one user's sessions in a turn, each way */

bool session_is_reading(const struct session *session); /* its requests are read */
void session_mark_dirty(struct session *session);       /* flushed at the end of the turn */
void session_mark_busy(struct session *session);     /* if it has a request that may be handled */
void session_wait_for_turn(struct session *session); /* in any case */
/* What the loop does for the user from here on is its time: 0 where there is nobody else. */
uint64_t session_began_ns(const struct broker *broker);
void session_charge_time(struct broker *broker, struct fair_user *user, uint64_t began_ns);
void session_patience_over(struct deadline *deadline); /* it is closed */

/* After frames were handled: what still waits is charged anew, which may close the session. */
void session_charge_waiting(struct session *session);
void session_count_messages(struct session *session);
/* A message has begun to come: the time begins in which it is to be complete. */
void session_watch_half(struct session *session);

/* Looks whether the client reads enough to stay, and to be read from. */
void session_update_slow(struct session *session);
/* Its time is over: whether it may have more, because it reads a little, or enough by now. */
bool session_may_be_slow(struct session *session);
/* Replies were sent or dropped: who waits for that may go on. */
void session_tell_room(struct broker *broker);
