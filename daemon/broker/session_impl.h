/* Between session.c and session_send.c. */
#pragma once

#include "daemon/broker/session.h"

bool session_is_reading(const struct session *session); /* its requests are read */
void session_mark_dirty(struct session *session);       /* flushed at the end of the turn */
void session_mark_busy(struct session *session);       /* if it has a request that may be handled */
void session_patience_over(struct deadline *deadline); /* it is closed */

/* Its user has so much to read that one more reply of any length may be too much. */
bool session_is_behind(const struct session *session);
/* Looks whether the client reads enough to be read from. */
void session_update_clog(struct session *session);
/* Replies were sent or dropped: who waits for that may go on. */
void session_tell_room(struct broker *broker);
