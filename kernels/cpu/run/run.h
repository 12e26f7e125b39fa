/* A pass bound to one box: what runs for every strip. Lives in the thread's scratch. */
#pragma once

#include "kernels/cpu/run/count.h"
#include "kernels/cpu/run/reducer.h"
#include "kernels/cpu/run/scanner.h"
#include "kernels/cpu/run/stream.h"

#define CPU_KERNEL_FAMILIES 10

struct cpu_engine {
    enum cpu_level level;
    const kernel_table *families[CPU_KERNEL_FAMILIES];
    const kernel_table *past, *drawn, *past_drawn;
    const kernel_casts *casts;
    const kernel_row *mixed;
    const struct chain_kernels *chains;
    const reduce_table *reduce, *sums, *extrema;
    const reduce_fused_table *fused;
    const rows_table *rows;
    const short_rows_table *short_rows;
    const struct scan_kernels *scan_sum, *scan_prod;
    const struct move_kernels *move;
    const struct transpose_kernels *transpose;
    const struct rank_kernels *ranks;
    const struct multiply_tiles *tiles; /* multiply_kernels.h */
    const struct multiply_vectors *vectors;
    const struct slab_kernels *slabs;     /* slab_kernels.h */
    const struct window_kernels *windows; /* window_kernels.h */
};

/* Never NULL for what the compiler makes; NULL for an op that its dtypes do not have. Where
 * *ret_is_exchanged, the kernel takes the two sources in the other order. */
kernel_fn *engine_find_kernel(const struct cpu_engine *engine, const struct insn *insn,
                              bool *ret_is_exchanged);
/* The one that writes past the cache, of an instruction that has a kernel; NULL where there is
 * none. */
kernel_fn *engine_find_past(const struct cpu_engine *engine, const struct insn *insn);
/* The one for elements whose numbers count up: of an instruction that draws, or (is_draw: false)
 * that makes a distribution of bits; NULL where there is none. */
kernel_fn *engine_find_drawn(const struct cpu_engine *engine, const struct insn *insn, bool is_draw,
                             bool is_past);
/* Sets what kernels there are in *d, and is_ordered. */
bool engine_find_reduction(const struct cpu_engine *engine, const struct reduction *reduction,
                           struct reducing *d);

/* Sets along and across. */
bool engine_find_scan(const struct cpu_engine *engine, const struct reduction *reduction,
                      struct scanning *d);

/* Every value of a strip has a slot: run->address[slot] is where the strip's elements are. */
struct bound_insn {
    kernel_fn *kernel;
    kernel_fn
        *past; /* of one that is streamed: the same, to the store's place; NULL: in two steps */
    uint16_t dst, src[3];
    uint16_t streamed; /* the store that takes the result past the cache; NO_STORE */
    uint16_t drawn;    /* of the draws, where a strip's numbers count up; NO_DRAW: as any other */
    uint16_t worst_ns; /* for an element */
    /* Of a chain, of which this is the last; n_steps 0: of one instruction. */
    uint16_t n_steps;
    uint8_t dtype;
    const struct chain_step *steps;
};
#define NO_STORE UINT16_MAX
#define NO_DRAW  UINT16_MAX

/* What an instruction is in a strip whose elements' numbers count up. */
struct bound_draw {
    kernel_fn *kernel; /* NULL: the next instruction does it all */
    kernel_fn *past;   /* the same, to the store's place; NULL: in two steps */
    uint16_t seed, stream;
};

/* What a loop moves when elements are done (loop.c). */
enum moved_kind {
    MOVED_STATE, /* steps change it; buffer: where elements that are done are */
    MOVED_READ,  /* steps read it alone; buffer: those of elements that go on */
    MOVED_OWN,   /* it is made before the condition and read behind it */
    MOVED_NOT,
};
struct moved {
    uint16_t slot;
    uint8_t item_log2, kind;
    char *buffer;
};
#define LOOP_MAX_MOVED                                                                             \
    (PROGRAM_MAX_REGISTERS + REQUEST_MAX_ARGS + PASS_MAX_NEARS + PASS_MAX_RESULTS +                \
     ARRAY_MAX_NDIM + 1)
#define LOOP_PLACES 4 /* lists of them, each for a strip */

/* When so many of the elements go on, those are moved together. */
#define LOOP_PAYS    3
#define LOOP_PAYS_OF 4

struct bound_loop {
    uint16_t first_insn, n_insns, n_until;
    uint16_t until; /* slot, or UINT16_MAX: none */
    uint32_t n_steps;
    bool has_events;
    uint16_t n_moved;
    struct moved *moved;
    uint16_t *places;
};

struct bound_store {
    struct stream stream;
    uint16_t src;    /* slot to copy from; where the pass scans: which of the scans */
    kernel_fn *cast; /* of a scan's running results; NULL: they have the output's dtype */
    bool is_direct;  /* the strip's last definition may write to the stream's own memory */
    /* Of a direct one that bypasses the cache: it is computed in the strip's buffer. */
    bool is_read_again;  /* the buffer is used behind the definition */
    uint8_t src_log2[3]; /* item sizes of the definition's sources */
    char *place;         /* of this strip, in the stream's own memory */
};

/* Lines of an input that will be read in the next strip. */
struct fetch {
    uintptr_t at, end;
};

struct run {
    const struct cpu_engine *engine;
    const struct program *program;
    const struct pass *pass;
    const struct engine_box *box;
    uint64_t n_elements;
    size_t n_strip; /* a multiple of KERNEL_GRANULE */
    unsigned n_slots, n_insns, n_loops, n_draws, n_inputs, n_indices, n_reductions, n_stores;
    void **address;
    struct bound_insn *insns;
    struct bound_loop *loops;
    struct bound_draw *draws;
    struct chain_step *steps;
    uint16_t *n_uses;      /* of what instructions give, for chains */
    struct stream *inputs; /* those that the pass reads; then earlier passes' results */
    struct index_stream *indices;
    struct index_stream *numbers; /* that of the indices which draws are made for; NULL: none */
    bool is_numbered_for_draws;   /* nothing else reads them */
    bool is_counting;             /* in this strip they count up, from first_number on */
    uint64_t first_number;
    struct fetch *fetches; /* the first n_fetches are to be done, beginning at next_fetch */
    unsigned n_fetches, next_fetch;
    size_t n_fetch_lines; /* of the whole strip */
    struct reducer reducer;
    struct reducing *reductions;
    unsigned n_counts;              /* of the reductions: BINCOUNTs */
    unsigned n_qrs;                 /* and QR_Rs */
    struct kth *kth;                /* all reductions are KTHs of one source; NULL: none is */
    struct index_stream *positions; /* of all elements, where ARGMIN or ARGMAX want them; or NULL */
    struct bound_store *stores;
    unsigned n_scans; /* then there are no reductions, and stores are of these */
    struct scanner scanner;
    struct scanning *scans;
    void *cast_strip; /* a strip of scans' results, cast */
    void *spare;      /* one strip of the widest item, free between insns and the next strip */
    struct kernel_events events;
    bool ends_with_rows;     /* strips do, where inputs lie in rows */
    bool is_straight;        /* one chain of what lies densely: but for the tail, no strips */
    uint64_t strip_worst_ns; /* for an element, beside the instructions */
    uint64_t since_asked_ns; /* as long as all since then takes at its worst */
    bool is_stopped;         /* box->pace has said so */
};

/* What cpu_engine_run() is given beside the box; `room` is the thread's, for windows. */
struct run_call {
    const struct cpu_engine *engine;
    const struct program *program;
    const struct pass *pass; /* that reads windows */
    const struct engine_view *inputs, *outputs, *reduced;
    const struct reduce_layout *layout;
    void *node;
    struct engine_warnings *warnings;
    void *scratch;
    struct window_room *room;
    const struct engine_box *grain; /* of which is counted what windows' operands meet */
};
/* run.c: the pass over a box, its windows first. */
int run_with_windows(const struct run_call *call, const struct engine_box *box) GAD_MUST_CHECK;

/* Lays out the scratch, fills what is the same in all strips. -EINVAL for a program that the
 * compiler cannot have made, or a node that the planner cannot. */
int run_bind(const struct cpu_engine *engine, const struct program *program,
             const struct pass *pass, const struct engine_box *box,
             const struct engine_view *inputs, const struct engine_view *outputs,
             const struct engine_view *reduced, const struct reduce_layout *layout, void *node,
             void *scratch, struct run **ret_run) GAD_MUST_CHECK;

/* run.c: a pass, but for its repeats. As cpu_engine_run(). */
int run_one(const struct cpu_engine *engine, const struct program *program, const struct pass *pass,
            const struct engine_box *box, const struct engine_view *inputs,
            const struct engine_view *outputs, const struct engine_view *reduced,
            const struct reduce_layout *layout, void *node, struct engine_warnings *warnings,
            void *scratch) GAD_MUST_CHECK;

/* steps/run_repeats.c: the pass's repeats for the box. inputs: those of the pass; the views of
 * states among ret_inputs are set, and the others copied. */
int run_repeats(const struct cpu_engine *engine, const struct program *program,
                const struct pass *pass, const struct engine_box *box,
                const struct engine_view *inputs, const struct engine_view *reduced,
                struct engine_warnings *warnings, void *scratch,
                struct engine_view *ret_inputs) GAD_MUST_CHECK;

/* draws.c: what random numbers are made of, in strips whose elements' numbers count up. The
 * first: returns whether the numbers themselves need not be there. */
bool run_counts(struct run *run, uint64_t first, size_t n);
void run_drawn(struct run *run, const struct bound_insn *insn, size_t n);

/* run_scans.c: a strip's scans and the stores of their running results. */
void run_scans(struct run *run, uint64_t first, size_t n);

/* Instructions one after the other over n elements, for loops. False: the box is given up. */
bool run_insns(struct run *run, const struct bound_insn *insns, unsigned n_insns, size_t n);

/* loop.c: the steps of a loop over a strip of n elements. */
void loop_run(struct run *run, const struct bound_loop *loop, size_t n);

/* direct.c: takes in the whole box where no strip is needed; else returns false. */
bool run_directly(struct run *run);
