/* Asking the daemon for a plan. */
#pragma once

#include "client/lib/jobs/build.h"

/* The options were checked. *ret_plan: gad_plan_free(). Turns to providers by itself where the
 * daemon asks for it. */
int plan_ask(struct gad_client *client, const struct gad_job_options *options,
             enum build_purpose purpose, struct gad_plan **ret_plan,
             struct gad_error *error) GAD_MUST_CHECK;

/* A list of n pointers to elements of so many bytes, a multiple of 8, all zero; ended by free().
 * NULL: no memory. */
void *plan_list_new(size_t n, size_t element_bytes);

/* plan_engines.c: engine, engine_why and engines of the answer, as numbers and as lines of the
 * text. -EPROTO: they are not of the protocol; -ENOMEM. */
int plan_engines_read(const msgpack_object *map, struct gad_plan *plan) GAD_MUST_CHECK;
void plan_engines_print(FILE *out, const struct gad_plan *plan);

/* plan_passes.c: passes and rounds, likewise. */
int plan_passes_read(const msgpack_object *map, struct gad_plan *plan) GAD_MUST_CHECK;
/* The pass goes over arrays of a length that nobody knows, planned as open_length: then nothing is
 * known of how much there is to do. */
void plan_pass_forget(struct gad_plan_pass *pass, int64_t open_length);
void plan_passes_print(FILE *out, const msgpack_object *map, const struct gad_plan *plan);
/* Of a pass: its grains, and the names of what it reads and writes. without_slots: how its arrays
 * are used where no slot is needed. */
void plan_grains_print(FILE *out, const msgpack_object *pass, const char *without_slots);
void plan_names_print(FILE *out, const msgpack_object *pass);

/* plan_product.c: a matrix product, likewise. */
int plan_product_read(const msgpack_object *map, struct gad_plan *plan) GAD_MUST_CHECK;
void plan_product_print(FILE *out, const msgpack_object *map, const struct gad_plan *plan);

void plan_bytes_print(FILE *out, uint64_t n_bytes);
