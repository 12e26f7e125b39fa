/* Finding OpenBLAS, and keeping it to one thread.
 *
 * The number of threads is the process's, which may use OpenBLAS itself: it is as it was when the
 * last of those who are within has left. Called by dense.c.
 */
#include "client/linalg/lapack.h"
#include "proto/util.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

static const char *const library_names[] = {"libopenblas.so.0", "libopenblas.so"};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lapack table;
static char why_not[200]; /* "": it is there */
static unsigned n_within;
static int n_threads_before;

static void *open_library(void)
{
    for (size_t i = 0; i < ARRAY_LENGTH(library_names); i++) {
        void *library = dlopen(library_names[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    snprintf(why_not, sizeof(why_not), "%s", dlerror());
    return NULL;
}

static void take_symbols(void *library)
{
#define LAPACK_TAKE(result, name, arguments)                                                       \
    *(void **)&table.name = dlsym(library, #name);                                                 \
    if (!table.name && !why_not[0])                                                                \
        snprintf(why_not, sizeof(why_not), "it has no %s", #name);
    LAPACK_TABLE(LAPACK_TAKE)
#undef LAPACK_TAKE
}

/* Its threads are begun here, and signals are not for them. */
static void load(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    void *library = open_library();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (library)
        take_symbols(library);
}

int lapack_begin(bool is_long, const struct lapack **ret_lapack, struct gad_error *error)
{
    pthread_once(&once, load);
    if (why_not[0]) {
        error_set(error, GAD_NOT_FOUND, "openblas", "OpenBLAS cannot be used: %s", why_not);
        error_expected(error, "%s, with LAPACK", library_names[0]);
        return GAD_NOT_FOUND;
    }
    pthread_mutex_lock(&lock);
    if (n_within++ == 0)
        n_threads_before = table.openblas_get_num_threads();
    if (!(is_long && n_within == 1) && table.openblas_get_num_threads() != 1)
        table.openblas_set_num_threads(1);
    pthread_mutex_unlock(&lock);
    *ret_lapack = &table;
    return 0;
}

void lapack_end(const struct lapack *lapack)
{
    pthread_mutex_lock(&lock);
    if (--n_within == 0 && n_threads_before != 1)
        lapack->openblas_set_num_threads(n_threads_before);
    pthread_mutex_unlock(&lock);
}
