/* Runs the tests of this program in the order of their registration; see criterion/criterion.h.
 *
 * Each has a child of its own, which is made while there is one thread: what is set up once in a
 * process, what a test breaks and a signal that ends it are its own. The last line counts them as
 * Criterion does.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static struct plain_test *first, **end = &first, *suites;
static const struct plain_test *current;
static pthread_t runner;
static jmp_buf left;
static atomic_bool has_failed;

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

void plain_expected(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s:%d: %s::%s: %s", file, line, current->suite, current->name, condition);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    atomic_store(&has_failed, true);
}

void plain_leave(void)
{
    if (pthread_equal(pthread_self(), runner))
        longjmp(left, 1);
    _Exit(EXIT_FAILURE); /* a thread of the test's own cannot end it otherwise */
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

/* In the child. exit() rather than _exit(): there the sanitizers say what was never freed. */
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
    exit(atomic_load(&has_failed) ? EXIT_FAILURE : EXIT_SUCCESS);
}

static bool passes(void)
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        run_current();
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("fork");
        return false;
    }
    const int got = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (got == current->signal && (got || WEXITSTATUS(status) == current->exit_code))
        return true;
    fprintf(stderr, "[FAIL] %s::%s: wait status %#x\n", current->suite, current->name, status);
    return false;
}

int main(void)
{
    unsigned n_tested = 0, n_failed = 0;
    for (struct plain_test *test = first; test; test = test->next) {
        take_from_suite(test);
        current = test;
        n_tested++;
        if (!passes())
            n_failed++;
    }
    fprintf(stderr, "[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Crashing: 0\n",
            n_tested, n_tested - n_failed, n_failed);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
