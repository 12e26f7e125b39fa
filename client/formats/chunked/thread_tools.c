/* Scratches and buffers of the threads that serve chunks: as many as ever worked at a time.
 *
 * Called by chunk_source.c and chunk_sink.c.
 */
#include "client/formats/chunked/thread_tools.h"

#include <errno.h>
#include <stdlib.h>

int chunk_bytes_reserve(struct chunk_bytes *bytes, size_t n_bytes)
{
    if (n_bytes > bytes->room) {
        free(bytes->data);
        bytes->data = malloc(n_bytes);
        bytes->room = bytes->data ? n_bytes : 0;
    }
    bytes->n_bytes = bytes->room >= n_bytes ? n_bytes : 0;
    return bytes->room >= n_bytes ? 0 : -ENOMEM;
}

static void tools_free(struct thread_tools *tools)
{
    codec_scratch_free(tools->scratch);
    free(tools->bytes.data);
    free(tools);
}

void tools_init(struct tools_pool *pool)
{
    pthread_mutex_init(&pool->lock, NULL);
    pool->idle = NULL;
}

void tools_deinit(struct tools_pool *pool)
{
    while (pool->idle) {
        struct thread_tools *tools = pool->idle;
        pool->idle = tools->next;
        tools_free(tools);
    }
    pthread_mutex_destroy(&pool->lock);
}

struct thread_tools *tools_take(struct tools_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct thread_tools *tools = pool->idle;
    if (tools)
        pool->idle = tools->next;
    pthread_mutex_unlock(&pool->lock);
    if (tools)
        return tools;
    tools = calloc(1, sizeof(*tools));
    if (tools && !(tools->scratch = codec_scratch_new())) {
        tools_free(tools);
        return NULL;
    }
    return tools;
}

void tools_give_back(struct tools_pool *pool, struct thread_tools *tools)
{
    pthread_mutex_lock(&pool->lock);
    tools->next = pool->idle;
    pool->idle = tools;
    pthread_mutex_unlock(&pool->lock);
}
