/* What a process of the daemon gives up once it is set up, so that who takes it over gains little.
 */
#pragma once

#include "proto/error.h"

/* No process of the same user looks into this one or attaches to it, and it leaves no core. Where
 * the process is one under sanitizers, which must look into it, nothing here has any effect. */
void confine_hide(void);

/* For good, for all threads, and for every program that is started afterwards. 0 or -errno. */

/* Nothing that concerns other processes, the system or the network. */
int confine_broker(void) GAD_MUST_CHECK;

/* As well no program is started and no other process signalled. For workers whose device has a
 * driver inside the process, which opens files and makes threads as it likes. */
int confine_worker(void) GAD_MUST_CHECK;

/* Only the calls of a worker of the CPU engine; no file is opened. */
int confine_worker_strictly(void) GAD_MUST_CHECK;
