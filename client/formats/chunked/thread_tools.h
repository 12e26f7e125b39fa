/* What a thread needs to decode or encode a chunk, kept for the next one. */
#pragma once

#include "client/codecs/codec.h"
#include "client/formats/chunked/chunk_source.h"

#include <pthread.h>

struct thread_tools {
    struct thread_tools *next;
    struct codec_scratch *scratch;
    struct chunk_bytes bytes;
};

struct tools_pool {
    pthread_mutex_t lock;
    struct thread_tools *idle;
};

void tools_init(struct tools_pool *pool);
void tools_deinit(struct tools_pool *pool);               /* all were given back */
struct thread_tools *tools_take(struct tools_pool *pool); /* NULL: no memory */
void tools_give_back(struct tools_pool *pool, struct thread_tools *tools);
