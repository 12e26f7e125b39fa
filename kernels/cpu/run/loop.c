/* A loop of a pass over one strip: steps until all elements are done.
 *
 * Elements that are done take part in further steps without changing, which costs time alone. So
 * when enough of them are, those that go on are moved together: whatever steps read of each element
 * is copied to its buffer's front, the states of elements that are done to where the strip has them
 * in the end ("home"). Where instructions count warnings, those that are done are out of the way in
 * every step: each is counted as often as its steps say. The bits are the same in any case.
 *
 *     strip    | a b c d e f g h |   b, c, e, g are done:
 *     moved    | a d f h . . . . |   place[] says: 0 3 5 7
 *     home     | . b c . e . g . |   and the rest when they are done
 *
 * What belongs to an input is never written: it is moved to a buffer of the loop's own. Called by
 * bind.c, for each box, and by run.c, for each strip.
 */
#include "kernels/cpu/run/bind.h"

#include "proto/util.h"

#include <errno.h>
#include <string.h>

/* ---- binding ---- */

static size_t most_moved(const struct program_loop *loop)
{
    return min_u64(4u * loop->n_insns + 1u, LOOP_MAX_MOVED);
}

bool loop_init(struct binding *b)
{
    struct run *run = b->run;
    const struct pass *pass = run->pass;
    unsigned end = pass->first_insn;
    run->loops = layout_take(b, run->n_loops * sizeof(*run->loops));
    for (unsigned i = 0; i < run->n_loops; i++) {
        const struct program_loop *of = &run->program->loops[pass->first_loop + i];
        if (of->first_insn < end || of->n_until > of->n_insns || of->n_insns == 0)
            return false;
        end = of->first_insn + of->n_insns;
        if (end > pass->first_insn + (unsigned)pass->n_insns)
            return false;
        run->loops[i] = (struct bound_loop){
            .first_insn = (uint16_t)(of->first_insn - pass->first_insn),
            .n_insns = of->n_insns,
            .n_until = of->n_until,
            .n_steps = of->n_steps,
            .until = NO_SLOT,
            .moved = layout_take(b, most_moved(of) * sizeof(struct moved)),
        };
    }
    return true;
}

unsigned loop_end(const struct run *run, unsigned insn)
{
    for (unsigned i = 0; i < run->n_loops; i++)
        if (insn - run->loops[i].first_insn < run->loops[i].n_insns)
            return run->loops[i].first_insn + run->loops[i].n_insns - 1u;
    return NEVER;
}

void loop_begin_binding(struct binding *b)
{
    const struct run *run = b->run;
    if (run->n_loops == 0)
        return;
    b->loop_places = layout_take(b, LOOP_PLACES * run->n_strip * sizeof(*b->loop_places));
    b->loop_at = b->used_bytes;
}

size_t loop_bytes_per_element(const struct binding *b)
{
    const struct run *run = b->run;
    if (run->n_loops == 0)
        return 0;
    size_t n_bytes = run->pass->n_registers * b->register_bytes + run->n_indices * sizeof(int64_t) +
                     LOOP_PLACES * sizeof(*b->loop_places);
    for (unsigned i = 0; i < run->n_inputs; i++)
        n_bytes += (size_t)1 << run->inputs[i].item_log2;
    return n_bytes;
}

static struct moved *find_moved(struct bound_loop *loop, uint16_t slot)
{
    for (unsigned i = 0; i < loop->n_moved; i++)
        if (loop->moved[i].slot == slot)
            return &loop->moved[i];
    return NULL;
}

static struct moved *add_moved(struct bound_loop *loop, uint16_t slot, unsigned dtype,
                               enum moved_kind kind)
{
    struct moved *m = &loop->moved[loop->n_moved++];
    *m = (struct moved){.slot = slot,
                        .item_log2 = (uint8_t)__builtin_ctzl(dtype_size((enum dtype)dtype)),
                        .kind = (uint8_t)kind};
    return m;
}

static void note_read(struct binding *b, struct bound_loop *loop, const struct operand *operand)
{
    bool is_each = operand->kind != OPERAND_NONE && operand->kind != OPERAND_CONST &&
                   operand->kind != OPERAND_TABLE;
    uint16_t slot = is_each ? bind_slot_of(b, operand) : NO_SLOT;
    if (is_each && !find_moved(loop, slot) && !bind_is_number(b, slot))
        add_moved(loop, slot, operand->dtype, MOVED_READ);
}

/* Which of the values of a step another step reads, or the rest of the step. */
static void list_moved(struct binding *b, struct bound_loop *loop, const struct operand *until)
{
    const struct run *run = b->run;
    for (unsigned i = 0; i < loop->n_insns; i++) {
        const struct insn *insn =
            &run->program->insns[run->pass->first_insn + loop->first_insn + i];
        for (unsigned j = 0; j < 3; j++)
            note_read(b, loop, &insn->src[j]);
        if (i + 1u == loop->n_until)
            note_read(b, loop, until);
        uint16_t slot = run->insns[loop->first_insn + i].dst;
        struct moved *m = find_moved(loop, slot);
        if (!m)
            m = add_moved(loop, slot, insn->dst.dtype, i < loop->n_until ? MOVED_OWN : MOVED_NOT);
        else if (m->kind == MOVED_READ)
            m->kind = MOVED_STATE;
        else if (i < loop->n_until)
            m->item_log2 = (uint8_t)__builtin_ctzl(dtype_size((enum dtype)insn->dst.dtype));
    }
    if (loop->n_until == 0)
        note_read(b, loop, until);
}

void loop_bind(struct binding *b, struct bound_loop *loop, const struct program_loop *of)
{
    struct run *run = b->run;
    unsigned n = 0;
    loop->places = b->loop_places;
    if (of->until.kind != OPERAND_NONE)
        loop->until = bind_slot_of(b, &of->until);
    for (unsigned i = 0; i < of->n_insns; i++)
        loop->has_events |= program_has_events(&run->program->insns[of->first_insn + i]);
    list_moved(b, loop, &of->until);
    size_t at = b->loop_at;
    for (unsigned i = 0; i < loop->n_moved; i++) {
        struct moved m = loop->moved[i];
        if (m.kind == MOVED_NOT)
            continue;
        if (m.kind != MOVED_OWN) {
            m.buffer = b->scratch + at;
            at += run->n_strip << m.item_log2;
        }
        loop->moved[n++] = m;
    }
    loop->n_moved = (uint16_t)n;
}

/* ---- running ---- */

/* By eights, each byte counting for itself: at most 255 times. */
static size_t count_done(const uint8_t *is_done, size_t n)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), evens = UINT64_C(0x00ff00ff00ff00ff);
    size_t n_done = 0, i = 0;
    while (i + 8 <= n) {
        uint64_t sums = 0, word;
        for (size_t end = min_u64(n - n % 8, i + 255 * 8); i < end; i += 8) {
            memcpy(&word, is_done + i, 8);
            sums += word & ones;
        }
        sums = (sums & evens) + (sums >> 8 & evens);
        n_done += sums * UINT64_C(0x0001000100010001) >> 48;
    }
    for (; i < n; i++)
        n_done += is_done[i] & 1;
    return n_done;
}

static bool pays(size_t n, size_t n_done)
{
    size_t n_left = round_up_u64(n - n_done, KERNEL_GRANULE);
    return n_left * LOOP_PAYS_OF <= round_up_u64(n, KERNEL_GRANULE) * LOOP_PAYS;
}

/* to[to_places[i]] = from[from_places[i]]; NULL: i. */
#define MOVE(T)                                                                                    \
    static void move_##T(T *to, const uint16_t *to_places, const T *from,                          \
                         const uint16_t *from_places, size_t n)                                    \
    {                                                                                              \
        for (size_t i = 0; i < n && to_places; i++)                                                \
            to[to_places[i]] = from[from_places[i]];                                               \
        for (size_t i = 0; i < n && !to_places; i++)                                               \
            to[i] = from[from_places[i]];                                                          \
    }
MOVE(uint8_t)
MOVE(uint16_t)
MOVE(uint32_t)
MOVE(uint64_t)
#undef MOVE

static void move(unsigned item_log2, void *to, const uint16_t *to_places, const void *from,
                 const uint16_t *from_places, size_t n)
{
    switch (item_log2) {
    case 0: move_uint8_t(to, to_places, from, from_places, n); break;
    case 1: move_uint16_t(to, to_places, from, from_places, n); break;
    case 2: move_uint32_t(to, to_places, from, from_places, n); break;
    default: move_uint64_t(to, to_places, from, from_places, n); break;
    }
}

struct places {
    uint16_t *home; /* of each that goes on */
    uint16_t *left, *done, *done_home;
};

/* Puts those that go on together; returns how many they are. */
static size_t part(struct run *run, const struct bound_loop *loop, const struct places *p, size_t n)
{
    const uint8_t *is_done = run->address[loop->until];
    size_t n_left = 0, n_done = 0;
    for (size_t i = 0; i < n; i++) {
        p->left[n_left] = p->done[n_done] = (uint16_t)i;
        n_done += is_done[i] & 1;
        n_left += !(is_done[i] & 1);
    }
    move(1, p->done_home, NULL, p->home, p->done, n_done);
    move(1, p->home, NULL, p->home, p->left, n_left);
    for (unsigned i = 0; i < loop->n_moved; i++) {
        const struct moved *m = &loop->moved[i];
        void *from = run->address[m->slot], *to = m->kind == MOVED_READ ? m->buffer : from;
        if (m->kind == MOVED_STATE)
            move(m->item_log2, m->buffer, p->done_home, from, p->done, n_done);
        move(m->item_log2, to, NULL, from, p->left, n_left);
        run->address[m->slot] = to;
    }
    return n_left;
}

/* All back to where they are in the strip. */
static void bring_home(struct run *run, const struct bound_loop *loop, const struct places *p,
                       size_t n_left, size_t n_all)
{
    for (size_t i = 0; i < n_left; i++)
        p->left[i] = (uint16_t)i;
    for (unsigned i = 0; i < loop->n_moved; i++) {
        const struct moved *m = &loop->moved[i];
        void *at = run->address[m->slot];
        if (m->kind != MOVED_STATE)
            continue;
        move(m->item_log2, m->buffer, p->home, at, p->left, n_left);
        memcpy(at, m->buffer, n_all << m->item_log2);
    }
}

void loop_run(struct run *run, const struct bound_loop *loop, size_t n_all)
{
    struct places p = {.home = loop->places,
                       .left = loop->places + run->n_strip,
                       .done = loop->places + 2 * run->n_strip,
                       .done_home = loop->places + 3 * run->n_strip};
    const struct bound_insn *insns = &run->insns[loop->first_insn];
    void *before[LOOP_MAX_MOVED];
    size_t n = n_all;
    for (uint32_t step = 0; step < loop->n_steps; step++) {
        if (!run_insns(run, insns, loop->n_until, n))
            break;
        size_t n_done = loop->until != NO_SLOT ? count_done(run->address[loop->until], n) : 0;
        if (n_done == n)
            break;
        if (n_done > 0 && (loop->has_events || pays(n, n_done))) {
            for (unsigned i = 0; i < loop->n_moved && n == n_all; i++)
                before[i] = run->address[loop->moved[i].slot];
            for (size_t i = 0; i < n && n == n_all; i++)
                p.home[i] = (uint16_t)i;
            n = part(run, loop, &p, n);
        }
        if (!run_insns(run, insns + loop->n_until, loop->n_insns - loop->n_until, n))
            break;
    }
    if (n == n_all)
        return;
    bring_home(run, loop, &p, n, n_all);
    for (unsigned i = 0; i < loop->n_moved; i++)
        run->address[loop->moved[i].slot] = before[i];
}
