/* The line of the log that says how a job ended. */
#pragma once

struct broker;
struct job;

/* Once for each job, when its outcome is complete. */
void joblog_ended(const struct broker *broker, const struct job *job);
