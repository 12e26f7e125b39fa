/* Sorting rows: by bytes of the number from the lowest on, as far as the largest row has any, which
 * keeps the order of equal ones. Rows that come sorted are left as they are.
 */
#include "client/rows/row_order.h"
#include "client/rows/large_memory.h"
#include "proto/util.h"

#include <string.h>

#define DIGIT_BITS 11u
#define N_DIGITS   (1u << DIGIT_BITS)

static void sort_digit(const struct wanted_row *from, struct wanted_row *to, uint64_t n,
                       unsigned shift)
{
    uint64_t starts[N_DIGITS] = {0}, sum = 0;
    for (uint64_t i = 0; i < n; i++)
        starts[(uint64_t)from[i].row >> shift & (N_DIGITS - 1)]++;
    for (unsigned k = 0; k < N_DIGITS; k++) {
        uint64_t count = starts[k];
        starts[k] = sum;
        sum += count;
    }
    for (uint64_t i = 0; i < n; i++)
        to[starts[(uint64_t)from[i].row >> shift & (N_DIGITS - 1)]++] = from[i];
}

int row_order_init(struct row_order *ret_order, uint64_t n, const int64_t *rows)
{
    struct row_order order = {.n = n, .wanted = large_alloc((n + 1) * sizeof(*order.wanted))};
    int64_t largest = 0;
    bool is_sorted = true;
    if (!order.wanted)
        return -ENOMEM;
    for (uint64_t i = 0; i < n; i++) {
        order.wanted[i] = (struct wanted_row){rows[i], i};
        is_sorted &= rows[i] >= largest;
        largest = max_i64(largest, rows[i]);
    }
    if (!is_sorted) {
        struct wanted_row *other = large_alloc((n + 1) * sizeof(*other));
        if (!other) {
            row_order_deinit(&order);
            return -ENOMEM;
        }
        for (unsigned shift = 0; shift < 63 && largest >> shift > 0; shift += DIGIT_BITS) {
            struct wanted_row *from = order.wanted;
            sort_digit(from, other, n, shift);
            order.wanted = other;
            other = from;
        }
        free(other);
    }
    *ret_order = order;
    return 0;
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
