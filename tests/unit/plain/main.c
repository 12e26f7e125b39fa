/* Runs the tests of this program, as many at once as there are processors; see
 * criterion/criterion.h.
 *
 * Each has a child of its own, which is made while there is one thread: what is set up once in a
 * process, what a test breaks and a signal that ends it are its own. The last line counts them as
 * Criterion does.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_SKIPPED 77 /* of a child */

static struct plain_test *first, **end = &first, *suites;
static const struct plain_test *current; /* in a child */
static pthread_t runner;
static jmp_buf left;
static atomic_bool has_failed, is_skipped;
static _Thread_local char differ[512]; /* the values of the comparison that failed last, or "" */

void plain_register_suite(struct plain_test *suite)
{
    suite->next = suites;
    suites = suite;
}

void plain_register(struct plain_test *test)
{
    *end = test;
    end = &test->next;
}

bool plain_differ_integer(long long a, long long b)
{
    snprintf(differ, sizeof(differ), "%lld, %lld", a, b);
    return false;
}

bool plain_differ_unsigned(unsigned long long a, unsigned long long b)
{
    snprintf(differ, sizeof(differ), "%llu, %llu", a, b);
    return false;
}

bool plain_differ_real(double a, double b)
{
    snprintf(differ, sizeof(differ), "%.17g, %.17g", a, b);
    return false;
}

bool plain_differ_str(const char *a, const char *b)
{
    snprintf(differ, sizeof(differ), "\"%.240s\", \"%.240s\"", a, b);
    return false;
}

bool plain_differ_ptr(const volatile void *a, const volatile void *b)
{
    snprintf(differ, sizeof(differ), "%p, %p", (void *)(uintptr_t)a, (void *)(uintptr_t)b);
    return false;
}

void plain_expected(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s:%d: %s::%s: %s", file, line, current->suite, current->name, condition);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, differ[0] ? ": compared last: %s\n" : "%s\n", differ);
    differ[0] = '\0';
    atomic_store(&has_failed, true);
}

void plain_leave(void)
{
    if (pthread_equal(pthread_self(), runner))
        longjmp(left, 1);
    _Exit(EXIT_FAILURE); /* a thread of the test's own cannot end it otherwise */
}

void plain_skip(void)
{
    atomic_store(&is_skipped, true);
    plain_leave();
}

static void take_from_suite(struct plain_test *test)
{
    for (const struct plain_test *suite = suites; suite; suite = suite->next) {
        if (strcmp(suite->suite, test->suite) != 0)
            continue;
        if (!test->init)
            test->init = suite->init;
        if (!test->fini)
            test->fini = suite->fini;
        if (!test->timeout)
            test->timeout = suite->timeout;
    }
}

/* In the child. exit() rather than _exit(): there the sanitizers say what was never freed, which is
 * no fault of a test that was skipped in the middle. */
__attribute__((noreturn)) static void run_current(void)
{
    runner = pthread_self();
    alarm((unsigned)current->timeout);
    if (setjmp(left) == 0) {
        if (current->init)
            current->init();
        current->run();
    }
    if (current->fini && setjmp(left) == 0)
        current->fini();
    if (atomic_load(&has_failed) || !atomic_load(&is_skipped))
        exit(atomic_load(&has_failed) ? EXIT_FAILURE : EXIT_SUCCESS);
    fflush(NULL);
    _Exit(EXIT_SKIPPED);
}

static void start(struct plain_test *test)
{
    take_from_suite(test);
    fflush(NULL);
    test->child = fork();
    if (test->child == 0) {
        current = test;
        run_current();
    }
    if (test->child < 0)
        perror("fork"); /* it has not passed */
}

/* Waits for one of the children. False if there is none. */
static bool take_one(unsigned *n_passed, unsigned *n_skipped)
{
    int status = 0;
    const pid_t child = waitpid(-1, &status, 0);
    struct plain_test *test = first;
    while (test && test->child != child)
        test = test->next;
    if (child <= 0 || !test)
        return false;
    test->child = 0; /* the number may come again */
    const int got = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (got == test->signal && (got || WEXITSTATUS(status) == test->exit_code))
        ++*n_passed;
    else if (!got && WEXITSTATUS(status) == EXIT_SKIPPED)
        ++*n_skipped;
    else
        fprintf(stderr, "[FAIL] %s::%s: wait status %#x\n", test->suite, test->name, status);
    return true;
}

int main(int argc, char **argv)
{
    const bool is_serial = argc > 1 && strcmp(argv[1], "-j1") == 0; /* as Criterion's option */
    const long n_at_once = is_serial ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
    unsigned n_tests = 0, n_passed = 0, n_skipped = 0;
    for (struct plain_test *test = first; test; test = test->next) {
        if (n_tests++ >= n_at_once)
            take_one(&n_passed, &n_skipped);
        start(test);
    }
    while (take_one(&n_passed, &n_skipped))
        ;
    n_tests -= n_skipped;
    fprintf(stderr, "[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Crashing: 0\n",
            n_tests, n_passed, n_tests - n_passed);
    return n_passed == n_tests ? EXIT_SUCCESS : EXIT_FAILURE;
}
