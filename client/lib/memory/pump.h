/* The pump: the threads of a client that serve the rings of its jobs. */
#pragma once

#include "client/lib/memory/feed.h"

struct pump;

int pump_new(struct pump **ret_pump, struct gad_error *error) GAD_MUST_CHECK;
struct pump *pump_free(struct pump *pump); /* NULL; all feeds were removed */
/* In a child of fork(): closes its copies of the descriptors, and does nothing else. */
void pump_forget(struct pump *pump);

/* The feed is served from here on. no-memory, io-error. */
int pump_add(struct pump *pump, struct feed *feed, struct gad_error *error) GAD_MUST_CHECK;
/* Returns the feed when the threads have let go of it. NULL: a function of the program's, which may
 * not return, has it in hand; the pump keeps it, and its array, until it has. */
struct feed *pump_remove(struct pump *pump, struct feed *feed) GAD_MUST_CHECK;
