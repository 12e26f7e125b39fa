/** gpuarrayd: arrays that a function of the program makes, block by block, of blocks of others.
 * Included by gpuarrayd.h.
 *
 * The function runs in the program that uses the library, never in the daemon, in threads of the
 * library, while a job reads the array: a block is made when it is asked for, and nothing of it is
 * kept but a few blocks. So such an array may be larger than memory, is a part of expressions as
 * others are (`mean(y)` is one pass over what y is made of), and may be read again, in any order:
 * blocks are then made again.
 *
 *     static int smooth(void *data, const struct gad_function_call *call) { ... }
 *
 *     const int64_t depth[] = {1, 1};
 *     const struct gad_function_input x = {.array = image, .depth = depth};
 *     const struct gad_function function = {
 *         .call = smooth, .n_inputs = 1, .inputs = &x, .mode = GAD_PAD_REFLECT};
 *     gad_array_from_function(client, &layout, &function, &smoothed, &error);
 *
 * `gpuarrayctl map ./kernel.so:smooth` does the same with a function of a shared object, which it
 * calls with `data` NULL; client/examples/stencil.c is one.
 */
#pragma once

#include "gpuarrayd-move.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A block of an array, as a function gets it. */
struct gad_block {
    void *data; /**< the first element, of the halo if there is one; of inputs only to be read */
    enum gad_dtype dtype;
    int ndim;
    const int64_t *shape;   /**< with the halo */
    const int64_t *strides; /**< bytes, of any sign */
    const int64_t *halo;    /**< elements before and behind, along each axis */
    const int64_t *start;   /**< of the block without its halo, in the array */
    const int64_t *whole;   /**< the array's shape */
};

/** One call of a function. Everything is the library's, valid during the call. */
struct gad_function_call {
    unsigned n_inputs;
    const struct gad_block *inputs; /**< in this machine's byte order */
    const struct gad_block *output; /**< to be filled whole; without a halo, in C order */
    struct gad_error
        *error; /**< a failure may say more: its message, and GAD_BAD_BLOCK as status */
};

/** Makes a block.
 * data: of the struct gad_function. call: the blocks.
 * Returns 0, or a positive errno, which fails the job with GAD_PROVIDER_FAILED. Called by several
 * threads of the library at once, in which signals are blocked. It must not use the client. */
typedef int gad_function_fn(void *data, const struct gad_function_call *call);

/** What a function's blocks are made of. */
struct gad_function_input {
    struct gad_array
        *array;           /**< of the same client; no stream; packed elements as they are stored */
    const int64_t *depth; /**< of the halo, for each axis; NULL: none. GAD_PAD_REFLECT and
                               GAD_PAD_SYMMETRIC: no more than the axis has to mirror */
    const int *axes; /**< for each axis that of the output along which it is cut, -1: each block
                          has all of it. NULL: as arrays broadcast to the output's shape */
};

struct gad_function {
    gad_function_fn *call;    /**< not NULL */
    void (*free)(void *data); /**< called once, when no thread calls any more, in the thread that
                                   releases the array, next begins a job whose data this process
                                   gives or takes, or closes the client (never, where a call has
                                   not returned by then); may be NULL */
    void *data;
    unsigned n_inputs; /**< may be 0: of nothing but the place */
    const struct gad_function_input *inputs;
    enum gad_pad_mode mode; /**< of what is beyond the borders of inputs; a constant is 0 */
    const int64_t *block;   /**< the output's blocks, for each of its axes; NULL: of about 2 MiB */
    bool in_order; /**< blocks are asked for once, in C order and by one thread, as the elements of
                        streams: jobs that would do otherwise are refused */
    unsigned n_threads; /**< that call at once, at most; 0: as many as there are processors */
};

/** Describes an array that a function makes.
 * client: not NULL; whose jobs may use the array.
 * layout: not NULL; copied; its strides are not used, and it is in this machine's byte order.
 * function: not NULL; copied. After a failure `free` was not called.
 * ret_array: the caller's, given up by gad_array_release(). Its inputs may be released before.
 * A call that does not return holds its own jobs and a thread, nothing else: they can be cancelled.
 * GAD_BAD_SHAPE: sizes that no array can have, an input that does not fit the output.
 * GAD_LIMIT_EXCEEDED: a block of more than 4 GiB. */
enum gad_status gad_array_from_function(struct gad_client *client, const struct gad_layout *layout,
                                        const struct gad_function *function,
                                        struct gad_array **ret_array, struct gad_error *error);

#ifdef __cplusplus
}
#endif
