/* How a worker ends that was not asked to: what its exit status tells the broker. */
#pragma once

enum worker_exit {
    /* The device or its driver is not there, or not usable by this build: worth trying again only
     * when that changes. Said with worker.failed before. No strikes. */
    WORKER_EXIT_ABSENT = 10,
    /* The device faulted: nothing that was computed since may be believed. The crash page says
     * which tiles were at it. */
    WORKER_EXIT_FAULT = 11,
    /* The pool is not to be had now: others have the memory. Said with worker.failed before. No
     * strikes. */
    WORKER_EXIT_NO_MEMORY = 12,
};
