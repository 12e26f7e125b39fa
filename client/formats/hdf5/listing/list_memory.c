/* Memory of a listing.
 *
 * An entry consists of many small texts and arrays that are all needed until the caller's function
 * has seen it, and then no longer: they hang on one list. Objects are told apart by the number that
 * HDF5 gives to their file and by their place in it; a table of these finds groups that were walked
 * already, and names of dimension scales.
 *
 * Called by the files of this folder.
 */
#include "client/formats/hdf5/listing/list_memory.h"
#include "proto/util.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- What an entry is made of ---- */

struct list_block {
    struct list_block *next;
    _Alignas(max_align_t) char bytes[];
};

void *list_memory_take(struct list_memory *memory, size_t n, size_t item_bytes)
{
    size_t n_bytes;
    struct list_block *block = NULL;
    if (!__builtin_mul_overflow(n, item_bytes, &n_bytes) && n_bytes < SIZE_MAX / 2)
        block = calloc(1, sizeof(*block) + n_bytes);
    if (!block) {
        memory->is_short = true;
        return NULL;
    }
    block->next = memory->blocks;
    memory->blocks = block;
    memory->n_bytes += n_bytes;
    return block->bytes;
}

char *list_memory_text(struct list_memory *memory, const char *text, size_t n_chars)
{
    char *copy = list_memory_take(memory, n_chars + 1, 1);
    if (copy)
        memcpy(copy, text, n_chars);
    return copy;
}

char *list_memory_format(struct list_memory *memory, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = n >= 0 ? list_memory_take(memory, (size_t)n + 1, 1) : NULL;
    if (!text)
        return NULL;
    va_start(arguments, format);
    vsnprintf(text, (size_t)n + 1, format, arguments);
    va_end(arguments);
    return text;
}

void list_memory_clear(struct list_memory *memory)
{
    for (struct list_block *block = memory->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    *memory = (struct list_memory){.is_short = memory->is_short};
}

/* ---- Objects ---- */

#if H5_VERSION_GE(1, 12, 0)
bool object_id_of(hid_t object, struct object_id *ret)
{
    H5O_info2_t info;
    if (H5Oget_info3(object, &info, H5O_INFO_BASIC) < 0)
        return false;
    *ret = (struct object_id){.file = info.fileno};
    memcpy(ret->place, &info.token, sizeof(ret->place));
    return true;
}

struct object_id object_id_linked(unsigned long file, const H5L_info_t *link)
{
    struct object_id id = {.file = file};
    memcpy(id.place, &link->u.token, sizeof(id.place));
    return id;
}
#else
bool object_id_of(hid_t object, struct object_id *ret)
{
    H5O_info_t info;
    if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0)
        return false;
    *ret = (struct object_id){.file = info.fileno};
    memcpy(ret->place, &info.addr, sizeof(info.addr));
    return true;
}

struct object_id object_id_linked(unsigned long file, const H5L_info_t *link)
{
    struct object_id id = {.file = file};
    memcpy(id.place, &link->u.address, sizeof(link->u.address));
    return id;
}
#endif

/* ---- Texts by object ---- */

struct object_slot {
    struct object_id id;
    char *text; /* NULL: free */
};

static uint64_t hash(const struct object_id *id)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325) ^ id->file;
    for (size_t i = 0; i < sizeof(id->place); i++)
        sum = (sum ^ id->place[i]) * UINT64_C(0x100000001b3);
    return sum ^ sum >> 32;
}

/* Where it is, or where it would be; there is always a free one. */
static struct object_slot *slot_of(struct object_slot *slots, size_t n_slots,
                                   const struct object_id *id)
{
    size_t at = hash(id) & (n_slots - 1);
    while (slots[at].text && (slots[at].id.file != id->file ||
                              memcmp(slots[at].id.place, id->place, sizeof(id->place)) != 0))
        at = (at + 1) & (n_slots - 1);
    return &slots[at];
}

const char *object_texts_find(const struct object_texts *texts, const struct object_id *id)
{
    return texts->slots ? slot_of(texts->slots, texts->n_slots, id)->text : NULL;
}

static bool grow(struct object_texts *texts)
{
    size_t n_slots = texts->n_slots ? texts->n_slots * 2 : 64;
    struct object_slot *slots = calloc(n_slots, sizeof(*slots));
    if (!slots)
        return false;
    for (size_t i = 0; i < texts->n_slots; i++)
        if (texts->slots[i].text)
            *slot_of(slots, n_slots, &texts->slots[i].id) = texts->slots[i];
    free(texts->slots);
    texts->slots = slots;
    texts->n_slots = n_slots;
    return true;
}

bool object_texts_add(struct object_texts *texts, const struct object_id *id, const char *text)
{
    if (2 * (texts->n + 1) > texts->n_slots && !grow(texts))
        return false;
    struct object_slot *slot = slot_of(texts->slots, texts->n_slots, id);
    if (slot->text)
        return true;
    slot->id = *id;
    slot->text = strdup(text);
    texts->n += slot->text != NULL;
    return slot->text != NULL;
}

void object_texts_deinit(struct object_texts *texts)
{
    for (size_t i = 0; i < texts->n_slots; i++)
        free(texts->slots[i].text);
    free(texts->slots);
    *texts = (struct object_texts){0};
}
