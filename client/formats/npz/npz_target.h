/* An archive that is being made: new members in a file without a name, to which those of an archive
 * that is there already are copied when it takes that one's place. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stdint.h>

struct npz_target;

/* A member of it. */
struct npz_new {
    struct npz_new *next;
    char *name; /* "x.npy" */
    bool replace;
    bool is_late;     /* it gets its place by npz_target_pack() */
    uint64_t n_bytes; /* of the npy header with the elements; by then it is known */
    uint64_t header_offset, data_offset, packed_bytes;
    bool is_deflated;
    uint32_t crc;
    bool is_ready; /* all written, its CRC is known */
};

/* `name` is the error's argument, as of all of these. */
int npz_target_new(const char *path, const char *name, struct npz_target **ret_target,
                   struct gad_error *error) GAD_MUST_CHECK;
struct npz_target *npz_target_ref(struct npz_target *target);
/* NULL allowed; the last one lets everything go that was not published. Returns NULL. */
struct npz_target *npz_target_unref(struct npz_target *target);
bool npz_target_is_for(const struct npz_target *target, const struct npz_target *other);

/* Gives a member that is not late its place, which is reserved; its data begin at a multiple of
 * 4096. exists, no-space, bad-format (what is there is no archive that can be added to). `member`
 * is the caller's and stays until it is removed. */
int npz_target_add(struct npz_target *target, struct npz_new *member, const char *name,
                   struct gad_error *error) GAD_MUST_CHECK;
/* The bytes of a late member are the first ones of the file `from`: deflates them into the target,
 * or copies them where that makes them hardly smaller, or level is NPZ_STORED. Its CRC is then
 * known. */
#define NPZ_STORED (-1)
int npz_target_pack(struct npz_target *target, struct npz_new *member, int from, int level,
                    const char *name, struct gad_error *error) GAD_MUST_CHECK;
void npz_target_remove(struct npz_target *target, struct npz_new *member);
/* It is on the disk, with its name, before it is published. */
void npz_target_sync(struct npz_target *target);
/* Open for reading and writing, as long as the target. */
int npz_target_fd(const struct npz_target *target);

/* The archive appears with these members, once they are all ready; until then 0 and nothing. */
int npz_target_publish(struct npz_target *target, const char *name,
                       struct gad_error *error) GAD_MUST_CHECK;
