/* What is said of an engine: its rates, and what the memory of its device is made of; and of a
 * shared scan. */
#pragma once

#include "client/ctl/ctl.h"

/* memory: the map of that name of an engine in server.info. */
void info_print_memory(struct json_object *memory, int depth);
/* rates: likewise; those that are known. */
void info_print_rates(struct json_object *rates, int depth);
/* scan: one of the array of that name: a line. */
void info_print_scan(struct json_object *scan, int depth);
