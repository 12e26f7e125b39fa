/* What a worker that was taken over would try. */
#pragma once

/* A line of standard error for each attempt that was not refused, and one with their number. */
void worker_escape(void);
