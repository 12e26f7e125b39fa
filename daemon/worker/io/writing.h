/* How large outputs are written to files: through the page cache or around it, whichever was
 * measured to be faster on that file system, around it when there is little between them. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WRITING_PIECE_BYTES (256 * 1024) /* rates are per piece */
#define WRITING_MIN_BYTES   (64 * 1024)  /* shorter runs go through the cache and are not timed */
#define WRITING_LARGE_BYTES (256u * 1024 * 1024)

enum write_way { WRITE_CACHED, WRITE_AROUND, WRITE_N_WAYS };

/* How to get around the cache, best first: what the kernel or the file system does not have is
 * skipped for good. */
enum write_around {
    AROUND_DONTCACHE, /* RWF_DONTCACHE: written back at once and dropped, by the kernel */
    AROUND_BEHIND,    /* the same asked for piece by piece: sync_file_range, posix_fadvise */
    AROUND_NONE,
};

/* What was measured on one file system, and what follows from it. Pure: see writing.c. */
struct write_choice {
    uint32_t piece_ns[WRITE_N_WAYS]; /* mean; means something when there are samples */
    uint32_t n_samples[WRITE_N_WAYS];
    enum write_way better;
    uint32_t n_probe;            /* pieces that the probe of the other way has left */
    uint32_t n_until, n_between; /* pieces to the next probe, pieces between probes */
};
enum write_way writing_choose(const struct write_choice *choice);
/* A piece took so long. */
void writing_learn(struct write_choice *choice, enum write_way way, uint64_t piece_ns);

/* A file system as the worker knows it. Threads use it without waiting: a sample that meets another
 * one at the same moment is left out. */
struct write_device {
    uint64_t device;    /* st_dev */
    uint64_t last_used; /* the table's count of openings; 0: free */
    _Atomic uint32_t around, way;
    atomic_flag is_learning;
    struct write_choice choice; /* these two: whoever is learning */
    uint64_t waited_until_ns;   /* the end of the last long wait that counted */
};

#define WRITING_MAX_DEVICES 16
struct write_devices { /* all zero: nothing is known */
    uint64_t n_opened;
    struct write_device devices[WRITING_MAX_DEVICES];
};

/* Main thread. The device's entry, for as long as the table lives; the one that was not asked for
 * longest begins anew when there are too many. */
struct write_device *writing_find(struct write_devices *table, uint64_t device);

/* One large output on its way to a file. */
struct writing {
    struct write_device *device; /* NULL: all of it goes through the cache */
    int64_t first_byte;          /* of the array in the file */
    int64_t no_choice_before;    /* this byte: see writing_no_choice_bytes() */
    _Atomic uint64_t around_bytes;
};

enum write_way writing_next(const struct write_device *d);
/* So many bytes went that way from begin_ns to end_ns (clock_ns()). */
void writing_note(struct write_device *d, enum write_way way, uint64_t n_bytes, uint64_t begin_ns,
                  uint64_t end_ns);
enum write_around writing_around(const struct write_device *d);
/* This way around is not to be had there: the next one is tried. */
void writing_lost(struct write_device *d, enum write_around around);

/* Whether an output of so many bytes is large on this machine now. */
bool writing_is_large(uint64_t n_bytes);
/* Of so many bytes, how many of the first ones go around the cache without a choice: none of an
 * output that is less than the kernel lets wait in the cache (a fifth of the memory, by default),
 * by a margin. Of a larger one, whatever the cache takes in at first the writers wait for in the
 * end, and longer than for the same bytes around it; but not for what the cache takes in last, if
 * that is little enough to wait there. */
uint64_t writing_no_choice_bytes(uint64_t n_bytes);
