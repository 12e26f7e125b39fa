/* For tests with a real daemon, which the library starts; $GPUARRAYD_DAEMON names the program. */
#pragma once

#include "client/gpuarrayd.h"

#include <sys/types.h>

extern char scratch[64];
extern struct gad_client *client;

void set_up(void);
void tear_down(void); /* ends the daemon, too */

pid_t daemon_pid(void);
pid_t worker_pid(void);
int count(const char *name); /* of server.info's counts */

const char *path_in(const char *name);      /* of the scratch directory; four at a time */
int n_files(void);                          /* in it */
void make_npy(const char *path, int64_t n); /* float64: 0, 1, 2, ... */

struct gad_array *wrap(void *data, int ndim, const int64_t *shape, const int64_t *strides);
struct gad_array *open_npy(const char *path);

/* One expression over one array, `a`. */
enum gad_status run(const char *expr, struct gad_array *a, struct gad_array *to,
                    const char *to_path, struct gad_error *error);
void run_well(const char *expr, struct gad_array *a, struct gad_array *to, const char *to_path);
double ask(const char *expr, struct gad_array *a); /* a scalar result */
