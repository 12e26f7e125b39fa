/* A daemon that the test starts, since the way in which the library starts one is not for
 * ThreadSanitizer. $GPUARRAYD_DAEMON names the program. */
#pragma once

#include "client/gpuarrayd.h"

extern char scratch[64];

struct gad_client *connect_soon(void);
struct gad_client *spawn_daemon(void); /* and a client of it */
void end_daemon(struct gad_client *client);
