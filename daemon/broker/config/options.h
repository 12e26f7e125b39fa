/* What the daemon was told: the command line over the configuration file over the defaults. */
#pragma once

#include "daemon/broker/config/config.h"

enum options_action { OPTIONS_SERVE, OPTIONS_CHECK_CONFIG, OPTIONS_PRINT_CONFIG };

/* Does not return for --help, --version and mistakes on the command line (exit status 2). Mistakes
 * of the file and contradictions go to `faults`. */
int options_parse(int argc, char **argv, struct options *ret_options,
                  enum options_action *ret_action, struct config_faults *faults) GAD_MUST_CHECK;

/* What `running` would be with the file as it is now. The same faults; may block as the file system
 * does. */
void options_reload(const struct options *running, struct options *ret_options,
                    struct config_faults *faults);

/* Fills worker_path where it is not set. -ENOENT: there is no such program. */
int options_find_worker(struct options *o) GAD_MUST_CHECK;
/* The same for cuda_worker_path. */
int options_find_cuda_worker(struct options *o) GAD_MUST_CHECK;
/* scan_path; empty where there is no such program. */
void options_find_scan(struct options *o);
