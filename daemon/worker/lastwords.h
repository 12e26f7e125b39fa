/* What a signal that ends the worker leaves in the crash page (daemon/crashpage.h): whether one of
 * the worker's own threads caused it, and which, or somebody outside sent it. */
#pragma once

#include "daemon/crashpage.h"

#include <signal.h>

/* From now on; the page stays. -errno. */
int lastwords_install(struct crashpage *page);
/* The page is about to go: nothing is written any more. No thread has a place in it. */
void lastwords_forget(void);
/* The calling thread's place in the page, as long as it lives; NULL: none. */
void lastwords_own(struct crashpage_thread *own);
/* Async-signal-safe; also before lastwords_install(). For handlers of other modules. */
void lastwords_note(int number, const siginfo_t *info);
