/* Runs the tests of this program in the order of their registration; see criterion/criterion.h.
 * The last line counts them as Criterion does. With PLAIN_FORKS each test has a child of its own,
 * which is made while there is one thread: for what is set up once in a process.
 */
#include <criterion/criterion.h>

#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PLAIN_FORKS
#define PLAIN_FORKS 0
#endif

static struct plain_test *first, **end = &first;
static const struct plain_test *current;
static unsigned n_passed;

static void print_counts(unsigned n_failed)
{
    fprintf(stderr, "[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Crashing: 0\n",
            n_passed + n_failed, n_passed, n_failed);
}

void plain_register(struct plain_test *test)
{
    *end = test;
    end = &test->next;
}

void plain_fail(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s:%d: %s::%s: %s", file, line, current->suite, current->name, condition);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    print_counts(1);
    _Exit(EXIT_FAILURE);
}

static void run_in_child(void)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        current->run();
        _Exit(EXIT_SUCCESS);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "%s::%s: status %#x\n", current->suite, current->name, status);
        print_counts(1);
        _Exit(EXIT_FAILURE);
    }
}

int main(void)
{
    for (current = first; current; current = current->next) {
        if (current->signal)
            continue;
        if (PLAIN_FORKS)
            run_in_child();
        else
            current->run();
        n_passed++;
    }
    print_counts(0);
    return EXIT_SUCCESS;
}
