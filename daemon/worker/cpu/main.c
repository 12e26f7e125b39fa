/* gpuarrayd-worker-cpu: the worker with the CPU as its engine. See program.h. */
#include "daemon/confine.h"
#include "daemon/worker/cpu/engine.h"
#include "daemon/worker/jobs/program.h"
#include "kernels/cpu/multiply/multiply.h"
#include "proto/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { OPTION_POOL = 2000, OPTION_LEVEL };

struct options {
    struct program_options program;
    struct engine_cpu_config engine;
};

static const struct argp_option option_table[] = {
    {"pool", OPTION_POOL, "BYTES", 0, "size of the pool", 0},
    {"level", OPTION_LEVEL, "NAME", 0, "best instruction set: plain, baseline, avx2, avx512", 0},
    {0},
};

static enum cpu_level parse_level(const char *text, struct argp_state *state)
{
    for (unsigned i = CPU_LEVEL_PLAIN; i <= CPU_LEVEL_AVX512; i++)
        if (strcmp(text, cpu_level_name((enum cpu_level)i)) == 0)
            return (enum cpu_level)i;
    argp_error(state, "'%s' is no level", text);
    return CPU_LEVEL_AVX512;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->program; return 0;
    case OPTION_POOL: o->engine.pool_bytes = program_parse_number(text, INT64_MAX, state); return 0;
    case OPTION_LEVEL: o->engine.max_level = parse_level(text, state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    static const struct argp_child children[] = {{&program_argp, 0, NULL, 0}, {0}};
    static const struct argp parser = {.options = option_table,
                                       .parser = parse_option,
                                       .doc = "The worker of gpuarrayd's CPU engine.",
                                       .children = children};
    struct options o = {.engine = {.max_level = CPU_LEVEL_AVX512}};
    struct engine *engine;
    program_options_init(&o.program);
    argp_parse(&parser, argc, argv, 0, NULL, &o);
    o.engine.n_threads = o.program.n_threads;
    if (o.program.fd < 0 || o.engine.pool_bytes == 0 || o.engine.n_threads == 0)
        return program_failed("--fd, --pool and --threads", -EINVAL);
    int r = program_begin(&o.program);
    if (r)
        return r > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    r = engine_cpu_new(&o.engine, &engine);
    if (r)
        return program_failed("the pool", r);
    if (cpu_multiply_is_serial())
        fprintf(stderr,
                "<4>%s: OpenBLAS is a serial one: float matrix products run in one thread at a "
                "time; install one with threads (libopenblas0-pthread)\n",
                program_invocation_short_name);
    program_run(&o.program, engine, confine_worker_strictly);
}
