/* Sorting rows. Rows that come sorted are left as they are.
 *
 * A row and its place are one number of 64 bits, wherever both have room in one: those are sorted
 * by digits of the row, from the lowest on, as far as the largest row has any, which keeps the
 * order of equal ones. The numbers and their copy lie in the memory of the order itself:
 *
 *     0          n          2n  numbers
 *     [ ........ | ........ ]   from one half to the other and back, the last time to the second
 *     [ row, place | row, .. ]  from there each to where it belongs, which is never behind it
 */
#include "client/rows/row_order.h"
#include "client/rows/large_memory.h"
#include "proto/util.h"

#include <string.h>

#define DIGIT_BITS 11u
#define N_DIGITS   (1u << DIGIT_BITS)

static unsigned bits_of(uint64_t largest)
{
    return largest > 0 ? 64u - (unsigned)__builtin_clzll(largest) : 0;
}

static void sort_digit(const uint64_t *from, uint64_t *to, uint64_t n, unsigned shift)
{
    uint64_t starts[N_DIGITS] = {0}, sum = 0;
    for (uint64_t i = 0; i < n; i++)
        starts[from[i] >> shift & (N_DIGITS - 1)]++;
    for (unsigned k = 0; k < N_DIGITS; k++) {
        uint64_t count = starts[k];
        starts[k] = sum;
        sum += count;
    }
    for (uint64_t i = 0; i < n; i++)
        to[starts[from[i] >> shift & (N_DIGITS - 1)]++] = from[i];
}

static void sort_numbers(struct wanted_row *wanted, uint64_t n, const int64_t *rows,
                         unsigned row_bits, unsigned place_bits)
{
    uint64_t *first = (uint64_t *)wanted, *second = first + n;
    unsigned n_digits = (row_bits + DIGIT_BITS - 1) / DIGIT_BITS;
    uint64_t *from = n_digits % 2 ? first : second, *to = n_digits % 2 ? second : first;
    for (uint64_t i = 0; i < n; i++)
        from[i] = (uint64_t)rows[i] << place_bits | i;
    for (unsigned i = 0; i < n_digits; i++) {
        sort_digit(from, to, n, place_bits + i * DIGIT_BITS);
        uint64_t *sorted = to;
        to = from;
        from = sorted;
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t number = second[i];
        wanted[i] = (struct wanted_row){(int64_t)(number >> place_bits),
                                        number & ((UINT64_C(1) << place_bits) - 1)};
    }
}

static int compare(const void *a, const void *b)
{
    const struct wanted_row *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

int row_order_init(struct row_order *ret_order, uint64_t n, const int64_t *rows)
{
    struct row_order order = {.n = n, .wanted = large_alloc((n + 1) * sizeof(*order.wanted))};
    int64_t largest = 0;
    bool is_sorted = true;
    if (!order.wanted)
        return -ENOMEM;
    for (uint64_t i = 0; i < n; i++) {
        is_sorted &= rows[i] >= largest;
        largest = max_i64(largest, rows[i]);
    }
    unsigned row_bits = bits_of((uint64_t)largest), place_bits = bits_of(n);
    bool has_room = row_bits + place_bits <= 64;
    if (!is_sorted && has_room)
        sort_numbers(order.wanted, n, rows, row_bits, place_bits);
    for (uint64_t i = 0; i < n && (is_sorted || !has_room); i++)
        order.wanted[i] = (struct wanted_row){rows[i], i};
    if (!is_sorted && !has_room)
        qsort(order.wanted, n, sizeof(*order.wanted), compare);
    *ret_order = order;
    return 0;
}

int row_order_of_places(struct row_order *ret_order, uint64_t n, const int64_t *rows)
{
    struct row_order order = {.n = n, .wanted = large_alloc((n + 1) * sizeof(*order.wanted))};
    if (!order.wanted)
        return -ENOMEM;
    for (uint64_t i = 0; i < n; i++)
        order.wanted[i] = (struct wanted_row){rows[i], i};
    *ret_order = order;
    return 0;
}

int row_order_sorted(const struct row_order *order, struct row_order *ret_order)
{
    int64_t *rows = malloc((order->n + 1) * sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    for (uint64_t i = 0; i < order->n; i++)
        rows[order->wanted[i].place] = order->wanted[i].row;
    int r = row_order_init(ret_order, order->n, rows);
    free(rows);
    return r;
}

void row_order_deinit(struct row_order *order)
{
    free_ptr(&order->wanted);
}

uint64_t row_order_find(const struct row_order *order, uint64_t from, int64_t row)
{
    uint64_t low = from, high = order->n;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (order->wanted[middle].row < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
