/* Operands on their way between the slot and a thread's planes.
 *
 * Where an operand is dense and aligned, a whole group is moved at once, 16 bytes where its items
 * have 4 or 8: towards the planes without passing through registers (cp.async, from sm_80 on), so
 * that the thread goes on while they come. What is strided, swapped, beyond an end of an array or
 * a coordinate, and a strip that is not whole, is moved element by element; elements beyond the end
 * of the grain are read as 0. */
#pragma once

#include "kernels/cuda/device/lane.h"

DEVICE const struct code_place *place_of(const struct block *b, u32 place)
{
    return (const struct code_place *)((const char *)(b->grain + 1) +
                                       (u64)place * b->header->place_bytes);
}

DEVICE const struct code_operand *operand_of(const struct block *b, u32 place)
{
    return (const struct code_operand *)(b->slot + b->header->operands_offset) + place;
}

DEVICE void move_16(char *to, const char *from)
{
#if defined(__CUDACC__)
    *(uint4 *)to = *(const uint4 *)from;
#else
    memcpy(to, from, 16);
#endif
}

DEVICE void move_8(char *to, const char *from)
{
    *(u64 *)to = *(const u64 *)from;
}

DEVICE void move_4(char *to, const char *from)
{
    *(u32 *)to = *(const u32 *)from;
}

DEVICE void move_2(char *to, const char *from)
{
    *(u16 *)to = *(const u16 *)from;
}

/* Every byte other than 0 becomes 1. */
DEVICE u32 as_bools(u32 bytes)
{
    return (((bytes & 0x7f7f7f7fu) + 0x7f7f7f7fu) | bytes) >> 7 & 0x01010101u;
}

/* move_ahead_N(): from the slot to shared memory; there after moves_wait(). moves_commit(): all
 * since the last call are one batch. moves_wait(): until all batches but the newest n_newer are
 * there. */
#if !defined(__CUDACC__)
/* Who compiles this for the host has given them before. */
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define MOVE_AHEAD(kind, n_bytes)                                                                  \
    asm volatile("cp.async." kind ".shared.global [%0], [%1], " n_bytes                            \
                 ";" ::"r"((u32)__cvta_generic_to_shared(to)),                                     \
                 "l"(from)                                                                         \
                 : "memory")
DEVICE void move_ahead_16(char *to, const char *from)
{
    MOVE_AHEAD("cg", "16");
}

DEVICE void move_ahead_8(char *to, const char *from)
{
    MOVE_AHEAD("ca", "8");
}

DEVICE void move_ahead_4(char *to, const char *from)
{
    MOVE_AHEAD("ca", "4");
}
#undef MOVE_AHEAD

DEVICE void moves_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

DEVICE void moves_wait(u32 n_newer)
{
    if (n_newer == 2)
        asm volatile("cp.async.wait_group 2;" ::: "memory");
    else if (n_newer == 1)
        asm volatile("cp.async.wait_group 1;" ::: "memory");
    else
        asm volatile("cp.async.wait_group 0;" ::: "memory");
}
#else /* before sm_80 */
#define move_ahead_16 move_16
#define move_ahead_8  move_8
#define move_ahead_4  move_4

DEVICE void moves_commit(void) {}

DEVICE void moves_wait(u32 n_newer)
{
    (void)n_newer;
}
#endif

DEVICE u64 swapped_item(u64 item, u32 item_log2)
{
#if defined(__CUDACC__)
    u32 low = __byte_perm((u32)item, 0, 0x0123), high = __byte_perm((u32)(item >> 32), 0, 0x0123);
    u64 all = (u64)low << 32 | high;
#else
    u64 all = __builtin_bswap64(item);
#endif
    return all >> (64 - (8u << item_log2));
}

DEVICE u64 read_item(const char *at, u32 item_log2)
{
    switch (item_log2) {
    case 0: return *(const u8 *)at;
    case 1: return *(const u16 *)at;
    case 2: return *(const u32 *)at;
    default: return *(const u64 *)at;
    }
}

DEVICE void write_item(char *at, u64 item, u32 item_log2)
{
    switch (item_log2) {
    case 0: *(u8 *)at = (u8)item; break;
    case 1: *(u16 *)at = (u16)item; break;
    case 2: *(u32 *)at = (u32)item; break;
    default: *(u64 *)at = item; break;
    }
}

/* Bytes from the slot's base; or the coordinate. */
DEVICE i64 place_offset(const struct code_place *place, u32 element)
{
    const struct code_axis *axes = (const struct code_axis *)(place + 1);
    i64 offset = place->offset;
    u32 n_axes = place->n_axes;
    ONE_BY_ONE for (u32 i = 0; i < n_axes; i++)
    {
        u32 count = axes[i].count, outer = i + 1 < n_axes ? element / count : 0;
        offset += (i64)(element - outer * count) * axes[i].stride;
        element = outer;
    }
    return offset;
}

/* As place_offset(), of a place that is near. False: the element lies beyond. */
DEVICE bool near_offset(const struct code_near *near, u32 element, i64 *ret_offset)
{
    const struct code_near_axis *axes = (const struct code_near_axis *)(near + 1);
    i64 offset = near->place.offset;
    u32 n_axes = near->place.n_axes;
    bool is_there = true;
    ONE_BY_ONE for (u32 i = 0; i < n_axes; i++)
    {
        u32 count = axes[i].count, outer = i + 1 < n_axes ? element / count : 0;
        i64 at = (i64)(element - outer * count);
        if (axes[i].length > 0) {
            i64 place = near_place(axes[i].mode, axes[i].first + at, axes[i].length);
            is_there = is_there && place >= 0;
            at = place - axes[i].first;
        }
        offset += at * axes[i].stride;
        element = outer;
    }
    *ret_offset = offset;
    return is_there;
}

struct slow_move {
    const struct code_place *place;
    char *slot;
    struct value value;
    u32 first, step, end; /* the thread's first element; from group to group; of the block */
    u8 group_log2, item_log2;
    bool is_bool;
};

DEVICE u64 place_read(const struct slow_move *m, u32 element)
{
    i64 offset;
    if (m->place->kind == CODE_PLACE_NEAR) {
        const struct code_near *near = (const struct code_near *)m->place;
        if (!near_offset(near, element, &offset))
            return near->beyond;
    } else {
        offset = place_offset(m->place, element);
    }
    if (m->place->kind == CODE_PLACE_INDEX)
        return (u64)offset;
    u64 item = read_item(m->slot + offset, m->item_log2);
    if (m->place->is_swapped)
        item = swapped_item(item, m->item_log2);
    return m->is_bool ? item != 0 : item;
}

DEVICE_CALL void load_slowly(struct slow_move m)
{
    u32 length = 1u << m.group_log2;
    ONE_BY_ONE for (u32 k = 0; k < CODE_THREAD_ELEMENTS; k++)
    {
        u32 element = m.first + (k >> m.group_log2) * m.step + (k & (length - 1));
        u64 item = element < m.end ? place_read(&m, element) : 0;
        write_item(item_at(m.value, 1u << m.item_log2, k), item, m.item_log2);
    }
}

DEVICE_CALL void store_slowly(struct slow_move m)
{
    u32 length = 1u << m.group_log2;
    ONE_BY_ONE for (u32 k = 0; k < CODE_THREAD_ELEMENTS; k++)
    {
        u32 element = m.first + (k >> m.group_log2) * m.step + (k & (length - 1));
        if (element >= m.end)
            continue;
        u64 item = read_item(item_at(m.value, 1u << m.item_log2, k), m.item_log2);
        if (m.place->is_swapped)
            item = swapped_item(item, m.item_log2);
        write_item(m.slot + place_offset(m.place, element), item, m.item_log2);
    }
}

DEVICE struct slow_move slow_move_of(const struct block *b, u32 thread, u32 strip_first, u32 index,
                                     struct value value)
{
    struct slow_move m;
    m.place = place_of(b, index);
    m.slot = b->slot;
    m.value = value;
    m.first = group_first(b, thread, strip_first, 0);
    m.step = b->header->n_threads << b->header->group_log2;
    m.end = b->end;
    m.group_log2 = (u8)b->header->group_log2;
    m.item_log2 = operand_of(b, index)->item_log2;
    m.is_bool = operand_of(b, index)->is_bool != 0;
    return m;
}

/* Behind the cells. */
DEVICE struct operand_place *operand_places(const struct block *b)
{
    return (struct operand_place *)(b->shared + (b->header->n_cells << 4));
}

/* In one access. */
DEVICE struct operand_place read_place(const struct block *b, u32 index)
{
#if defined(__CUDACC__)
    struct operand_place p;
    uint4 all = *(const uint4 *)(operand_places(b) + index);
    p.first = (char *)((u64)all.y << 32 | all.x);
    p.dst = (u16)all.z;
    p.group_bytes = (u16)(all.z >> 16);
    p.item_bytes = (u8)all.w;
    p.way = (u8)(all.w >> 8);
    p.thread_log2 = (u8)(all.w >> 16);
    p.unused = 0;
    return p;
#else
    return operand_places(b)[index];
#endif
}

/* Loads come first, then stores; a place is prepared by one thread for all. */
DEVICE void prepare_place(const struct block *b, u32 index)
{
    const struct code_place *place = place_of(b, index);
    const struct code_operand operand = *operand_of(b, index);
    u32 group_bytes_log2 = b->header->group_log2 + operand.item_log2;
    struct operand_place p;
    p.first = b->slot + place->offset;
    p.dst = operand.dst;
    p.unused = 0;
    p.item_bytes = (u8)(1u << operand.item_log2);
    p.group_bytes = (u16)(1u << group_bytes_log2);
    p.thread_log2 = (u8)(4 - group_bytes_log2);
    p.way = WAY_SLOW;
    if (place->kind == CODE_PLACE_LINEAR && !place->is_swapped && group_bytes_log2 <= 4)
        p.way = (u8)(WAY_16 + p.thread_log2);
    if (operand.is_bool && p.way != WAY_SLOW)
        p.way = (u8)(p.way - WAY_4 + WAY_BOOL_4);
    operand_places(b)[index] = p;
}

DEVICE void load_group(char *to, const char *from, u32 way)
{
    if (way == WAY_16) {
        move_ahead_16(to, from);
        return;
    }
    switch (way) {
    case WAY_8: move_ahead_8(to, from); break;
    case WAY_4: move_ahead_4(to, from); break;
    case WAY_2: move_2(to, from); break;
    case WAY_BOOL_4: *(u32 *)to = as_bools(*(const u32 *)from); break;
    default: *(u16 *)to = (u16)as_bools(*(const u16 *)from); break;
    }
}

DEVICE void store_group(char *to, const char *from, u32 way)
{
    if (way == WAY_16) {
        move_16(to, from);
        return;
    }
    switch (way) {
    case WAY_8: move_8(to, from); break;
    case WAY_4: move_4(to, from); break;
    default: move_2(to, from); break;
    }
}

/* The thread's first group in a strip. */
DEVICE char *group_in_slot(struct operand_place p, u32 thread, u32 strip_first)
{
    return p.first + (u64)strip_first * p.item_bytes + (thread << 4 >> p.thread_log2);
}

DEVICE void load_strip(const struct block *b, u32 thread, u32 strip_first, bool is_whole, u32 set,
                       u32 index, struct operand_place p, u32 dst)
{
    struct value to = value_at(b, thread, set, dst);
    if (is_whole && p.way != WAY_SLOW) {
        const char *from = group_in_slot(p, thread, strip_first);
        load_group(to.at, from, p.way);
        if (b->header->group_log2 == 1)
            load_group(to.at + (p.item_bytes == 8 ? to.plane : p.group_bytes),
                       from + b->header->n_threads * p.group_bytes, p.way);
        return;
    }
    load_slowly(slow_move_of(b, thread, strip_first, index, to));
}

DEVICE void store_strip(const struct block *b, u32 thread, struct strip s, struct value from,
                        u32 index)
{
    struct operand_place p = read_place(b, index);
    if (s.is_whole && p.way != WAY_SLOW) {
        char *to = group_in_slot(p, thread, s.first);
        store_group(to, from.at, p.way);
        if (b->header->group_log2 == 1)
            store_group(to + b->header->n_threads * p.group_bytes,
                        from.at + (p.item_bytes == 8 ? from.plane : p.group_bytes), p.way);
        return;
    }
    store_slowly(slow_move_of(b, thread, s.first, index, from));
}
