/* A queue of bytes in one piece of memory, for what a connection has received and will send.
 *
 *     bytes            start              end            capacity
 *       +----------------+==================+----------------+
 *       |  used up       |  held            |  room          |
 *       +----------------+==================+----------------+
 *
 * A busy connection reuses the same memory for ever; an idle one should hold next to none. Memory
 * is therefore looked at each time the queue was emptied BUFFER_ROUNDS times: when the most that
 * it held in these rounds is under a quarter of its capacity, the memory goes back and the next
 * round takes what it needs. Bytes are moved to the front only when that makes more room than it
 * costs, so that appending stays linear.
 */
#include "proto/wire/buffer.h"

#include "proto/util.h"

#include <string.h>

#define BUFFER_MIN_BYTES 4096u
#define BUFFER_ROUNDS    32u

void buffer_deinit(struct buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct buffer){0};
}

size_t buffer_n_bytes(const struct buffer *buffer)
{
    return buffer->end - buffer->start;
}

static void move_to_front(struct buffer *buffer)
{
    size_t n_bytes = buffer_n_bytes(buffer);
    memmove(buffer->bytes, buffer->bytes + buffer->start, n_bytes);
    buffer->start = 0;
    buffer->end = n_bytes;
}

int buffer_reserve(struct buffer *buffer, size_t n_bytes)
{
    if (n_bytes <= buffer->capacity_bytes - buffer->end)
        return 0;
    size_t n_held = buffer_n_bytes(buffer), needed;
    if (__builtin_add_overflow(n_held, n_bytes, &needed))
        return -ENOMEM;
    if (needed <= buffer->capacity_bytes && buffer->start >= n_held) {
        move_to_front(buffer);
        return 0;
    }
    size_t capacity = max_u64(needed, buffer->capacity_bytes + buffer->capacity_bytes / 2);
    capacity = max_u64(capacity, BUFFER_MIN_BYTES);
    uint8_t *bytes = malloc(capacity);
    if (bytes == NULL)
        return -ENOMEM;
    if (n_held > 0)
        memcpy(bytes, buffer->bytes + buffer->start, n_held);
    free(buffer->bytes);
    buffer->bytes = bytes;
    buffer->capacity_bytes = capacity;
    buffer->start = 0;
    buffer->end = n_held;
    return 0;
}

void buffer_produced(struct buffer *buffer, size_t n_bytes)
{
    buffer->end += n_bytes;
    buffer->peak_bytes = max_u64(buffer->peak_bytes, buffer_n_bytes(buffer));
}

/* Of an empty one. */
static void give_back(struct buffer *buffer)
{
    if (buffer->kept_bytes == 0) {
        buffer_deinit(buffer);
        return;
    }
    if (buffer->capacity_bytes <= buffer->kept_bytes)
        return;
    uint8_t *less = realloc(buffer->bytes, buffer->kept_bytes);
    if (less == NULL)
        return;
    buffer->bytes = less;
    buffer->capacity_bytes = buffer->kept_bytes;
}

void buffer_consumed(struct buffer *buffer, size_t n_bytes)
{
    buffer->start += n_bytes;
    if (buffer->start < buffer->end)
        return;
    buffer->start = buffer->end = 0;
    if (++buffer->n_emptied < BUFFER_ROUNDS)
        return;
    if (buffer->peak_bytes < buffer->capacity_bytes / 4)
        give_back(buffer);
    buffer->peak_bytes = 0;
    buffer->n_emptied = 0;
}

void buffer_trim(struct buffer *buffer)
{
    if (buffer_n_bytes(buffer) == 0)
        give_back(buffer);
}
