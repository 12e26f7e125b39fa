/* The CPU engine: runs one pass of a program over one box of elements, strip by strip, in cache.
 *
 * Kernels are a table of function pointers per level, filled by the plain reference first and
 * overridden by what the processor can do. Thread-safe: the engine is read-only after creation,
 * scratch belongs to the calling thread.
 */
#pragma once

#include "kernels/engine.h"
#include "kernels/program.h"
#include "kernels/reductions/reduce.h"

enum cpu_level { CPU_LEVEL_PLAIN, CPU_LEVEL_BASELINE, CPU_LEVEL_AVX2, CPU_LEVEL_AVX512 };

struct cpu_engine;

/* The best level of this processor, at most max_level. The object is static: never freed. */
const struct cpu_engine *cpu_engine_get(enum cpu_level max_level);
enum cpu_level cpu_engine_level(const struct cpu_engine *engine);
const char *cpu_level_name(enum cpu_level level); /* "plain" "baseline" "avx2" "avx512" */

/* Bytes of scratch that every thread brings, 64-byte aligned; no other memory is used. */
#define CPU_SCRATCH_BYTES (2016u * 1024u)
/* Beside it, for passes that read windows. */
#define CPU_WINDOW_BYTES (14u * 1024u * 1024u)
/* Rows of one cell that boxes which go on with each other's node may have together. */
#define CPU_MAX_CONTINUED_ROWS 64u

/* Whether boxes of a pass can go on with each other's node, where elements of its fastest axis
 * (that has several) are kept. A cell takes in one row after the other then: the bits depend on the
 * values and how many rows there are in all the boxes together. */
bool cpu_engine_can_continue(const struct program *program, const struct pass *pass);

/* inputs: one view per program->inputs (those of pass->inputs_used are read). outputs: one view per
 * program->outputs (those of the pass's stores are written). reduced: one view per
 * program->reductions (those of pass->reduced_used are read; native, in the carry; of those of
 * pass->tables_used the base is the table's first element, and the elements lie densely). In a pass
 * that scans, views of its own reductions are the scans' states, with stride 0 along the scanned
 * axis: read where the box does not begin at that axis's beginning, and written. layout: of the
 * pass's node for this box, cells in visiting order of the kept axes; node: its memory, all of it
 * written, and read where the box is continued. Both NULL for a pass without reductions or that
 * scans. The bits of a cell depend on the extents of the box's reduced axes and the values alone:
 * not on the kept ones, nor on where the box begins.
 * Inputs and outputs may be the same memory element for element (in place). 0,
 * negative-integer-power, or -ECANCELED where box->pace said so: then what was to be written is
 * undefined. */
int cpu_engine_run(const struct cpu_engine *engine, const struct program *program, unsigned pass,
                   const struct engine_box *box, const struct engine_view *inputs,
                   const struct engine_view *outputs, const struct engine_view *reduced,
                   const struct reduce_layout *layout, void *node, struct engine_warnings *warnings,
                   void *scratch) GAD_MUST_CHECK;

/* Of what the pass's repeats keep for a box of it; 64-byte aligned. `start` may be NULL: all 0. */
uint64_t cpu_states_bytes(const struct program *program, const struct pass *pass,
                          const int64_t *start, const int64_t *count);

/* What was written past the cache comes before whatever the calling thread writes after this. To be
 * called before anybody is told that outputs with `bypasses_cache` are written. */
void cpu_engine_fence(void);

/* The data caches of this machine: a core's first, and the last, bounded to what is sensible where
 * the system does not say. Asked once. */
size_t cpu_first_cache_bytes(void);
size_t cpu_last_cache_bytes(void);
