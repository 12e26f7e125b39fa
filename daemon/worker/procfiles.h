/* What the kernel tells of the process and the machine. */
#pragma once

#include <stdint.h>

/* Called early by the worker's program, which later opens no files; else by the first who asks. */
void procfiles_open(void);

/* 0 where /proc is not there. */
unsigned procfiles_n_descriptors(void); /* without those of this module; one thread at a time */
uint64_t procfiles_private_bytes(void); /* anonymous pages of the process */

/* Memory that programs may have without that others must give up theirs. UINT64_MAX: not known. */
uint64_t procfiles_available_bytes(void);
