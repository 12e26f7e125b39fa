/* Several sources as one array, inside this folder. */
#pragma once

#include "client/formats/formats.h"
#include "client/formats/many/member.h"

#include <stdatomic.h>

/* What members have in common that were named together. */
struct group {
    struct group *next;
    struct spec spec;
};

struct many {
    size_t n_members, n_allocated;
    struct member *members; /* in order along the joined axis */
    struct group *groups;
    int axis;         /* of the result */
    bool is_new_axis; /* the members do not have it */
    int64_t length;   /* of all members along it */
    /* Of the result: byte order and, along other axes than `axis`, the shape. */
    struct array form;
    int member_ndim;
    const char *format;
    struct gad_array *first; /* the first member, closed: what it means, all mean */
    bool is_alike;           /* that is true */
    /* Bits of its attributes and axes, of which some say or name another thing. */
    uint32_t other_attributes, other_names;
    /* Of the result: along which axis of a member it goes, -1: none, and how. */
    int own_axes[ARRAY_MAX_NDIM];
    int64_t starts[ARRAY_MAX_NDIM], steps[ARRAY_MAX_NDIM];
    int64_t chunk_shape[ARRAY_MAX_NDIM]; /* of all members alike, in the result's axes */
    bool has_chunks;
    struct gad_array plain; /* what file_provider reads a plain member by */

    unsigned max_open;
    bool is_watched;
    atomic_bool has_changed; /* what is not open any more */

    pthread_mutex_t lock; /* from here on */
    struct opened *newest, *oldest;
    struct gad_error failure;
    struct opened *failed; /* a member that can say more of its failure; it stays open */
};

/* Their state is a struct many; the latter is for members that are all plain. */
extern const struct provider many_provider, many_provider_plain;

void many_forget_members(struct many *many);
void member_deinit(struct member *member);

/* Opens every member once, and sees that they go together. The members have
 * `first` and `length`, and are closed again. */
int many_look(struct many *many, const struct gad_join_options *options, const char *name,
              struct gad_error *error) GAD_MUST_CHECK;
/* Leaves the members that a selection of the whole needs, each with its part of it. *ret_is_one:
 * the result is the first member as it is: it has no joined axis any more. */
int many_select(struct many *many, const char *text, size_t selection_at, bool *ret_is_one,
                struct gad_error *error) GAD_MUST_CHECK;

/* The member as it is open, for one thread more; 0 or a positive errno, see many_fail(). */
int many_acquire(struct many *many, struct member *member,
                 struct opened **ret_opened) GAD_MUST_CHECK;
void many_let_go(struct many *many, struct opened *opened);
/* Members that may be open in the whole process. */
unsigned many_max_open(void);
/* Closes what nobody uses. */
void many_close_all(struct many *many);
/* The first failure is kept. Returns error_number. */
int many_fail(struct many *many, int error_number, const struct gad_error *error);
/* Of a member that is open; lets it go. */
int many_fail_read(struct many *many, struct opened *opened, int error_number);
int many_fail_changed(struct many *many, const struct member *member, const struct file_mark *now);
/* The failure as the provider tells it; it is forgotten. */
void many_explain(void *state, struct gad_error *error);

/* Watching: the provider's, and for opened.c. 0 where nobody watches, or the member's file is what
 * it was; else ESTALE. Without the lock. */
int many_watch(void *state, struct file_sums *sums);
int many_verify(void *state);
int many_check(struct many *many, const struct member *member);
/* The same of the files in a store, which is open; from now on its array says it of itself. */
int many_check_inside(struct many *many, const struct member *member,
                      const struct gad_array *array);
