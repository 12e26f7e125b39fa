/* The numbers of server.stats, for 'gpuarrayctl stats' and 'gpuarrayctl top'. */
#pragma once

#include "client/ctl/ctl.h"

/* ---- stats_value.c: reading the map. What is absent is 0, "" or NULL. */
/* Members of members: "pool.bytes". */
struct json_object *stats_at(struct json_object *map, const char *path);
uint64_t stats_u64(struct json_object *map, const char *path);
double stats_f64(struct json_object *map, const char *path);
const char *stats_text(struct json_object *map, const char *path);
/* The word for an engine's state: "ready", "absent", "asleep". */
const char *stats_engine_state(struct json_object *engine);

#define STATS_USER_SIZE 64
/* The user's name, or its number where it has none. Returns `buffer`. */
char *stats_user_name(uint32_t uid, char buffer[STATS_USER_SIZE]);
/* "12.3 s", "12:34 m", "1:23 h", "12 d": at most seven characters. Returns `buffer`. */
char *stats_format_time(double seconds, char buffer[16]);

/* Of a name, or a number. False: there is no such user. */
bool stats_find_user(const char *name, uint32_t *ret_uid);

/* ---- users_table.c: the map of server.users, for a reader */
void users_write_table(FILE *file, struct json_object *answer);
void users_write_limits(FILE *file, struct json_object *answer);

/* ---- stats_table.c: for a reader */
void stats_write_table(FILE *file, struct json_object *stats);

/* ---- stats_prometheus.c: the Prometheus text exposition format, version 0.0.4 */
void stats_write_prometheus(FILE *file, struct json_object *stats);
/* A label's value: backslash, quote and newline escaped. */
void stats_write_label_value(FILE *file, const char *text);

/* ---- stats_plot.c: the samples (the map of server.samples) as a picture */
/* last_ms: what its axis of time has; 0: all that there is. GAD_NO_MEMORY. */
int stats_write_plot(FILE *file, struct json_object *samples, uint64_t last_ms);

/* ---- stats_file.c */
/* Writes a file whole or not at all: beside it under a hidden name, then renamed. Mode 0644. Into a
 * device or a pipe, as it is. */
int stats_replace_file(const char *path, const char *data, size_t n_bytes, struct gad_error *error);
