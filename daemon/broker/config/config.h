/* The configuration file: reading it, and everything that is wrong with it. */
#pragma once

#include "daemon/broker/config/settings.h"

#define CONFIG_MAX_BYTES  (64u * 1024u)
#define CONFIG_MAX_FAULTS 50u
#define CONFIG_FAULT_SIZE 256u

struct config_fault {
    unsigned line; /* 0: of no line, as on the command line */
    char text[CONFIG_FAULT_SIZE];
};

struct config_faults { /* zeroed: none; in the order of lines */
    unsigned n, n_kept;
    struct config_fault kept[CONFIG_MAX_FAULTS];
};

void config_fault(struct config_faults *faults, unsigned line, const char *format, ...)
    GAD_PRINTF(3, 4);

/* Sets what the text says, but for settings whose source is the command line. All mistakes go to
 * `faults`; *o is then not to be used. */
void config_parse(const char *bytes, size_t n_bytes, struct options *o,
                  struct config_faults *faults);

/* Reads o->config_path, if this daemon has such a file. A missing one is a fault only if it was
 * asked for. May block as long as the file system does. */
void config_load(struct options *o, struct config_faults *faults);

/* "FILE:12: ..." of the i-th kept one. */
void config_fault_format(const struct options *o, const struct config_faults *faults, unsigned i,
                         char *text, size_t n_bytes);
