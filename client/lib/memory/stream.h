/* A stream, as the rest of the library sees it: an array whose feed is served by whoever pushes or
 * takes, not by the pump. */
#pragma once

#include "client/array.h"
#include "client/lib/memory/feed.h"

struct pump;

/* Of an array that is one; else NULL. */
struct gad_stream *stream_of(const struct gad_array *array);
uint32_t stream_n_slots(const struct gad_stream *stream);

/* Its job is about to be sent. busy: it has a job, or elements have moved; what the stream has
 * failed with. */
int stream_attach(struct gad_stream *stream, struct pump *pump, struct feed *feed,
                  struct gad_error *error) GAD_MUST_CHECK;
/* Afterwards nobody but the pump touches the feed. Nothing where it is not attached. */
void stream_detach(struct gad_stream *stream, const struct feed *feed);

/* Whether it is the stream that has made its job fail; *ret_error says how. */
bool stream_has_failed(struct gad_stream *stream, struct gad_error *ret_error);
/* Its job has ended, well or not. */
void stream_job_ended(struct gad_stream *stream, int status, const struct gad_error *error);
