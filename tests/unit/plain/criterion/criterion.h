/* The part of Criterion that the tests use, without its processes. See main.c.
 *
 * Criterion runs every test in a program started anew, mapped at fixed addresses. ThreadSanitizer
 * does not allow that, and under AddressSanitizer the starts, and Criterion's headers, take longer
 * than most tests. Builds with sanitizers put this folder before the system's: the same tests then
 * run in children of one process.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

struct plain_test {
    const char *suite, *name;
    void (*run)(void), (*init)(void), (*fini)(void);
    int signal, exit_code, timeout; /* how it must end, and after how many seconds */
    pid_t child;                    /* that runs it now; 0: none */
    struct plain_test *next;
};

/* Of a suite: .init and .fini of tests that have none, its .timeout of all. */
void plain_register_suite(struct plain_test *suite);
void plain_register(struct plain_test *test);

#define TestSuite(suite_, ...)                                                                     \
    static struct plain_test suite_##_suite = {.suite = #suite_, ##__VA_ARGS__};                   \
    __attribute__((constructor)) static void suite_##_register(void)                               \
    {                                                                                              \
        plain_register_suite(&suite_##_suite);                                                     \
    }                                                                                              \
    struct plain_test

#define Test(suite_, name_, ...)                                                                   \
    static void suite_##_##name_(void);                                                            \
    static struct plain_test suite_##_##name_##_test = {                                           \
        .suite = #suite_, .name = #name_, .run = suite_##_##name_, ##__VA_ARGS__};                 \
    __attribute__((constructor)) static void suite_##_##name_##_register(void)                     \
    {                                                                                              \
        plain_register(&suite_##_##name_##_test);                                                  \
    }                                                                                              \
    static void suite_##_##name_(void)

/* Says what did not hold; of cr_assert the test is over, but for its .fini. */
__attribute__((format(printf, 4, 5))) void
plain_expected(const char *file, int line, const char *condition, const char *format, ...);
__attribute__((noreturn)) void plain_leave(void);
__attribute__((noreturn)) void plain_skip(void);

#define cr_expect(condition, ...)                                                                  \
    do {                                                                                           \
        if (!(condition))                                                                          \
            plain_expected(__FILE__, __LINE__, #condition, " " __VA_ARGS__);                       \
    } while (0)

#define cr_assert(condition, ...)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            plain_expected(__FILE__, __LINE__, #condition, " " __VA_ARGS__);                       \
            plain_leave();                                                                         \
        }                                                                                          \
    } while (0)

#define cr_assert_not_null(pointer) cr_assert((pointer) != NULL)

#define cr_skip(...)      plain_skip()
#define cr_skip_test(...) plain_skip()
