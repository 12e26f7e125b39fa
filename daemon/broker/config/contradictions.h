/* Limits that contradict each other, or this machine. */
#pragma once

#include "daemon/broker/config/config.h"

/* What somebody gave and cannot be goes to `faults`. A default never contradicts: it is fitted to
 * what was given. */
void contradictions_check(struct options *o, struct config_faults *faults);
