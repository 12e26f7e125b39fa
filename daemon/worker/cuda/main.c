/* gpuarrayd-worker-cuda: the worker with one CUDA device as its engine. See program.h.
 *
 * A device that cannot be used is said to the broker with worker.failed, and in the exit status
 * (daemon/worker_exit.h).
 */
#include "daemon/confine.h"
#include "daemon/worker/cuda/engine.h"
#include "daemon/worker/failed.h"
#include "daemon/worker/jobs/program.h"
#include "daemon/worker_exit.h"
#include "proto/util.h"

enum {
    OPTION_DEVICE = 2000,
    OPTION_DEVICE_BYTES,
    OPTION_PINNED_BYTES,
    OPTION_CHUNK_BYTES,
    OPTION_DEPTH,
    OPTION_REGISTER_BYTES,
};

struct options {
    struct program_options program;
    struct card_config card;
    uint64_t register_bytes;
};

static const struct argp_option option_table[] = {
    {"device", OPTION_DEVICE, "N", 0, "which device (default: 0)", 0},
    {"device-bytes", OPTION_DEVICE_BYTES, "BYTES", 0, "memory of the device to take (0: choose)",
     0},
    {"pinned-bytes", OPTION_PINNED_BYTES, "BYTES", 0, "pinned memory to take (0: choose)", 0},
    {"chunk-bytes", OPTION_CHUNK_BYTES, "BYTES", 0, "size of a slot (0: choose)", 0},
    {"register-bytes", OPTION_REGISTER_BYTES, "BYTES", 0,
     "clients' memory to register at most (0: none; default: by the host's memory)", 0},
    {"depth", OPTION_DEPTH, "N", 0, "tiles at the device at a time (0: choose)", 0},
    {0},
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct options *o = state->input;
    struct card_config *card = &o->card;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->program; return 0;
    case OPTION_DEVICE: card->index = (int)program_parse_number(text, INT32_MAX, state); return 0;
    case OPTION_DEVICE_BYTES:
        card->device_bytes = program_parse_number(text, INT64_MAX, state);
        return 0;
    case OPTION_PINNED_BYTES:
        card->pinned_bytes = program_parse_number(text, INT64_MAX, state);
        return 0;
    case OPTION_CHUNK_BYTES:
        card->chunk_bytes = program_parse_number(text, INT64_MAX, state);
        return 0;
    case OPTION_REGISTER_BYTES:
        o->register_bytes = program_parse_number(text, INT64_MAX, state);
        return 0;
    case OPTION_DEPTH:
        card->depth = (unsigned)program_parse_number(text, CARD_MAX_DEPTH, state);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* Says why to the broker, who decides what of it is news for the log, and gives the exit status. */
static int refuse(const struct options *o, int status, const struct gad_error *error)
{
    int r = worker_send_failed(o->program.fd, error);
    if (r) {
        fprintf(stderr, "<3>%s: %s\n", program_invocation_short_name, error->message);
        (void)program_failed("worker.failed", r);
    }
    return status;
}

static int make_engine(const struct options *o, struct engine **ret_engine, struct gad_error *error)
{
    struct card *card;
    int status = card_open(&o->card, &card, error);
    if (status)
        return status;
    const struct cuda_engine_config config = {
        .card_take = card, .n_threads = o->program.n_threads, .register_bytes = o->register_bytes};
    int r = cuda_engine_new(&config, ret_engine);
    if (r < 0)
        (void)error_from_errno(error, -r, NULL, "making the engine");
    else if (r > 0)
        (void)error_set(error, GAD_INTERNAL, "device", "making events failed: %s: %s",
                        cuda_error_name(r), cuda_error_text(r));
    return r == 0 ? 0 : r == -ENOMEM ? WORKER_EXIT_NO_MEMORY : WORKER_EXIT_FAULT;
}

int main(int argc, char **argv)
{
    static const struct argp_child children[] = {{&program_argp, 0, NULL, 0}, {0}};
    static const struct argp parser = {.options = option_table,
                                       .parser = parse_option,
                                       .doc = "The worker of gpuarrayd's CUDA engine.",
                                       .children = children};
    struct options o = {.register_bytes = registered_default_bytes()};
    struct gad_error error = {0};
    struct engine *engine;
    program_options_init(&o.program);
    argp_parse(&parser, argc, argv, 0, NULL, &o);
    if (o.program.fd < 0 || o.program.n_threads == 0)
        return program_failed("--fd and --threads", -EINVAL);
    o.card.n_threads = o.program.n_threads;
    int r = program_begin(&o.program);
    if (r)
        return r > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    r = make_engine(&o, &engine, &error);
    if (r)
        return refuse(&o, r, &error);
    program_run(&o.program, engine, confine_worker);
}
