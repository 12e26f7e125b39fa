/* Which engine a job goes to, why, and what is said where none is there. */
#include "daemon/broker/workers/engines.h"
#include "kernels/plan/plan_engine.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024 * 1024)

static struct engine_offer offers[ENGINES_MAX];
static struct engine_decision decision;
static struct gad_error error;

static struct engine_offer cpu(void)
{
    return (struct engine_offer){
        .name = "cpu",
        .index = -1,
        .is_ready = true,
        .limits = {.engine = &plan_cpu,
                   .pool_bytes = 32 * MIB,
                   .slot_bytes = GRAIN_MAX_TOTAL_BYTES,
                   .carry_limit_bytes = 16 * MIB,
                   .n_threads = 2,
                   .rates = {.memory = 20e9, .file = 5e9, .work = 10e9, .job_seconds = 20e-6}}};
}

static struct engine_offer device(int index)
{
    struct engine_offer offer = {.is_device = true,
                                 .index = index,
                                 .is_ready = true,
                                 .limits = {.pool_bytes = 512 * MIB,
                                            .slot_bytes = 8 * MIB,
                                            .carry_limit_bytes = 256 * MIB,
                                            .n_threads = 2,
                                            .engine = &plan_cuda,
                                            .rates = {.memory = 20e9,
                                                      .file = 5e9,
                                                      .to_device = 12e9,
                                                      .from_device = 12e9,
                                                      .device = 600e9,
                                                      .work = 1e12,
                                                      .job_seconds = 100e-6}}};
    snprintf(offer.name, sizeof(offer.name), "cuda:%u", (unsigned)index % 100u);
    return offer;
}

/* Decides for an expression over a float32 vector that lies in a region. */
static int decide(const char *expr, int64_t n, enum engine_choice engine, int index,
                  unsigned n_offers)
{
    struct request_arg arg = {.name = "a"};
    struct request_output output = {.expr = expr, .n_expr_chars = strlen(expr), .has_to = true};
    struct array array = {.dtype = DTYPE_FLOAT32,
                          .ndim = 1,
                          .shape = {n},
                          .strides = {4},
                          .at.kind = LOCATION_REGION};
    struct job_request request = {.n_args = 1,
                                  .n_outputs = 1,
                                  .args = &arg,
                                  .outputs = &output,
                                  .engine = engine,
                                  .engine_index = index};
    struct program *program;
    arg.array = output.to = array;
    cr_assert(eq(int, program_compile(&request, &program, &error), 0), "%s", error.message);
    int r = engines_decide(&request, program, false, offers, n_offers, &decision, &error);
    program_free(program);
    return r;
}

#define LIGHT "a+1"
#define HEAVY "(a**a + exp(a)) ** gamma(a)"

static const char *chosen(void)
{
    return offers[decision.offer].name;
}

static const char *why_not(enum engine_choice engine, int index, unsigned offer)
{
    static char text[ENGINE_WHY_SIZE];
    struct job_request request = {.engine = engine, .engine_index = index};
    engines_why_not(&request, offers, &decision, offer, text);
    return text;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

Test(engines, auto_takes_the_one_that_ends_sooner)
{
    offers[0] = cpu();
    offers[1] = device(0);
    cr_assert(eq(int, decide(LIGHT, 64 * MIB, ENGINE_AUTO, -1, 2), 0));
    cr_assert(eq(str, (char *)chosen(), "cpu"));
    cr_assert(eq(uint, decision.n_estimates, 2));
    cr_assert(eq(ptr, strstr(decision.why, "auto: cpu "), decision.why), "%s", decision.why);
    cr_assert(ne(ptr, strstr(decision.why, " ms (memory), cuda:0 "), NULL), "%s", decision.why);
    cr_assert(eq(str, (char *)why_not(ENGINE_AUTO, -1, 0), ""));
    cr_assert(eq(str, (char *)why_not(ENGINE_AUTO, -1, 1), "ends later"));
    cr_assert(eq(int, decide(HEAVY, 64 * MIB, ENGINE_AUTO, -1, 2), 0));
    cr_assert(eq(str, (char *)chosen(), "cuda:0"));
    cr_assert(eq(int, decide(HEAVY, 100, ENGINE_AUTO, -1, 2), 0));
    cr_assert(eq(str, (char *)chosen(), "cpu"));
}

Test(engines, what_waits_there_already_counts)
{
    offers[0] = cpu();
    offers[1] = device(0);
    offers[2] = device(1);
    offers[0].busy_seconds = 100;
    cr_assert(eq(int, decide(LIGHT, 64 * MIB, ENGINE_AUTO, -1, 3), 0));
    cr_assert(eq(str, (char *)chosen(), "cuda:0"));
    offers[1].busy_seconds = 0.01;
    cr_assert(eq(int, decide(LIGHT, 64 * MIB, ENGINE_AUTO, -1, 3), 0));
    cr_assert(eq(str, (char *)chosen(), "cuda:1"));
    cr_assert(ne(ptr, strstr(decision.why, " behind 100 s"), NULL), "%s", decision.why);
    cr_assert(ne(ptr, strstr(decision.why, " behind 10.0 ms"), NULL), "%s", decision.why);
    cr_assert(eq(str, (char *)why_not(ENGINE_AUTO, -1, 0), "ends later, behind 100 s"));
}

Test(engines, a_named_one_is_taken_whatever_it_takes)
{
    offers[0] = cpu();
    offers[1] = device(0);
    offers[2] = device(3);
    cr_assert(eq(int, decide(LIGHT, 1000, ENGINE_CUDA, 3, 3), 0));
    cr_assert(eq(str, (char *)chosen(), "cuda:3"));
    cr_assert(eq(str, decision.why, "cuda:3 was asked for"));
    cr_assert(eq(str, (char *)why_not(ENGINE_CUDA, 3, 0), "cuda:3 was asked for"));
    cr_assert(eq(int, decide(HEAVY, 64 * MIB, ENGINE_CPU, -1, 3), 0));
    cr_assert(eq(str, (char *)chosen(), "cpu"));
    cr_assert(eq(str, decision.why, "cpu was asked for"));
    offers[1].busy_seconds = 1;
    cr_assert(eq(int, decide(LIGHT, 1000, ENGINE_CUDA, -1, 3), 0));
    cr_assert(eq(str, (char *)chosen(), "cuda:3"));
    cr_assert(eq(ptr, strstr(decision.why, "cuda: cuda:0 "), decision.why), "%s", decision.why);
}

Test(engines, one_that_takes_jobs_goes_before_one_that_will)
{
    offers[0] = cpu();
    offers[1] = device(0);
    offers[1].is_ready = false;
    offers[1].is_coming = true;
    cr_assert(eq(int, decide(HEAVY, 64 * MIB, ENGINE_AUTO, -1, 2), 0));
    cr_assert(eq(str, (char *)chosen(), "cpu"));
    cr_assert(ends_with(decision.why, " once it is ready"), "%s", decision.why);
    cr_assert(eq(str, (char *)why_not(ENGINE_AUTO, -1, 1), "takes no jobs yet"));
    cr_assert(eq(int, decide(HEAVY, 64 * MIB, ENGINE_CUDA, 0, 2), 0));
    cr_assert(eq(str, (char *)chosen(), "cuda:0"));
    offers[0].is_ready = false;
    cr_assert(eq(int, decide(LIGHT, 1000, ENGINE_AUTO, -1, 2), 0));
    cr_assert(eq(str, (char *)chosen(), "cuda:0"));
    cr_assert(eq(str, decision.why, "auto: only cuda:0 takes jobs"));
}

Test(engines, one_without_room_is_passed_by)
{
    offers[0] = cpu();
    offers[1] = device(0);
    offers[1].limits.pool_bytes = MIB;
    cr_assert(eq(int, decide(HEAVY, 64 * MIB, ENGINE_AUTO, -1, 2), 0));
    cr_assert(eq(str, (char *)chosen(), "cpu"));
    cr_assert(ne(ptr, strstr(decision.why, "cuda:0 cannot (too-large-for-pool)"), NULL), "%s",
              decision.why);
    cr_assert(ne(ptr, strstr(why_not(ENGINE_AUTO, -1, 1), "1048576"), NULL));
    cr_assert(eq(int, decide(LIGHT, 64 * MIB, ENGINE_CUDA, -1, 2), GAD_TOO_LARGE_FOR_POOL));
    cr_assert(eq(str, error.found, "1048576 bytes"));
}

Test(engines, what_is_not_there_is_refused_with_what_is)
{
    offers[0] = cpu();
    offers[1] = device(0);
    offers[1].is_ready = false;
    offers[1].absent_why = "no NVIDIA driver";
    cr_assert(eq(int, decide(LIGHT, 1000, ENGINE_CUDA, -1, 2), GAD_NO_ENGINE));
    cr_assert(eq(str, error.message, "the engine cuda is not there: no NVIDIA driver"));
    cr_assert(eq(str, error.argument, "engine"));
    cr_assert(eq(str, error.expected, "cpu"));
    cr_assert(eq(str, error.found, "cuda"));
    cr_assert(eq(int, decide(LIGHT, 1000, ENGINE_CUDA, 7, 2), GAD_NO_ENGINE));
    cr_assert(eq(str, error.message,
                 "the engine cuda:7 is not there: there is no such device, or the setting devices "
                 "leaves it out"));
    cr_assert(eq(int, decide(LIGHT, 1000, ENGINE_CUDA, 7, 1), GAD_NO_ENGINE));
    cr_assert(eq(str, error.message,
                 "the engine cuda:7 is not there: the daemon's setting is engine = cpu, or "
                 "gpuarrayd-worker-cuda is not installed"));
    cr_assert(eq(int, decide(LIGHT, 1000, ENGINE_AUTO, -1, 2), 0));
    cr_assert(eq(str, decision.why, "auto: only cpu takes jobs"));
    cr_assert(eq(str, (char *)why_not(ENGINE_AUTO, -1, 1), "no NVIDIA driver"));
    cr_assert(eq(int, decide(LIGHT, 1000, ENGINE_AUTO, -1, 0), GAD_NO_ENGINE));
    cr_assert(eq(str, error.expected, "none"));
    cr_assert(eq(int, decide(LIGHT, 1000, ENGINE_AUTO, -1, 1), 0));
    cr_assert(eq(str, decision.why, "auto: there is only cpu"));
}

Test(engines, many_devices_fit_the_text)
{
    offers[0] = cpu();
    for (int i = 0; i < ENGINE_MAX_DEVICES; i++) {
        offers[i + 1] = device(i);
        offers[i + 1].busy_seconds = 1e9;
    }
    cr_assert(eq(int, decide(LIGHT, 64 * MIB, ENGINE_AUTO, -1, ENGINES_MAX), 0));
    cr_assert(eq(str, (char *)chosen(), "cpu"));
    cr_assert(eq(ptr, strstr(decision.why, "auto: cpu "), decision.why), "%s", decision.why);
    cr_assert(ends_with(decision.why, "), ...") || ends_with(decision.why, " s, ..."), "%s",
              decision.why);
    offers[0].busy_seconds = 1e10;
    offers[12].busy_seconds = 1;
    cr_assert(eq(int, decide(LIGHT, 64 * MIB, ENGINE_AUTO, -1, ENGINES_MAX), 0));
    cr_assert(eq(str, (char *)chosen(), "cuda:11"));
    cr_assert(eq(ptr, strstr(decision.why, "auto: cuda:11 "), decision.why), "%s", decision.why);
    cr_assert(ends_with(decision.why, " s, ..."), "%s", decision.why);
}
