/* Taking samples (samples.h) as time goes by, and server.samples. */
#pragma once

#include "proto/error.h"

#include <stdint.h>

struct broker;
struct request;
struct sampler;

int sampler_new(struct broker *broker, struct sampler **ret_sampler) GAD_MUST_CHECK;
struct sampler *sampler_free(struct sampler *sampler); /* NULL; nobody waits for workers */

/* Once a turn: something may go on, after a while in which nothing did. */
void sampler_look_after(struct sampler *sampler);

/* Private memory of this process; 0: not known. */
uint64_t sampler_broker_bytes(const struct sampler *sampler);

int sampler_handle(const struct request *q, struct gad_error *error) GAD_MUST_CHECK;
