/* The end of a worker whose device has faulted. */
#pragma once

/* Logs what was being done and the runtime's word and text for the error, and leaves with
 * WORKER_EXIT_FAULT: at once, whatever other threads are at, since nothing of the context may be
 * believed or waited for. Any thread. */
_Noreturn void device_fault(const char *what, int cuda_error);
