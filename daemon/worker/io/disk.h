/* How fast files come that are not in the page cache, as far as jobs had to wait for them; see
 * disk.c. */
#pragma once

#include <stdint.h>

struct disk_meter {     /* all 0: nothing is known */
    unsigned n_reading; /* I/O threads */
    uint64_t begun_ns;  /* of what is added up now; 0: nothing is */
    uint64_t since_ns;  /* to where busy_ns is counted, while somebody reads; else: the last end */
    uint64_t busy_ns, n_bytes;
    double rate; /* bytes a second; 0: not known */
};

/* An I/O thread begins to read, has read. */
void disk_begin(struct disk_meter *m, uint64_t now_ns);
void disk_end(struct disk_meter *m, uint64_t now_ns);
/* A tile is done that has so many bytes of files, whichever thread has read them. */
void disk_count(struct disk_meter *m, uint64_t n_bytes);
