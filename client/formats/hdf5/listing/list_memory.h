/* Memory of a listing: what one entry is made of, and objects by where they lie. */
#pragma once

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>

/* Zeroed: empty. What is taken is freed together. */
struct list_memory {
    struct list_block *blocks;
    size_t n_bytes;
    bool is_short; /* there was not enough */
};

/* Zeroed and aligned for anything; NULL, and is_short: no memory. */
void *list_memory_take(struct list_memory *memory, size_t n, size_t item_bytes);
/* A copy with a '\0'. The same. */
char *list_memory_text(struct list_memory *memory, const char *text, size_t n_chars);
char *list_memory_format(struct list_memory *memory, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void list_memory_clear(struct list_memory *memory);

/* Which object of which file. */
struct object_id {
    unsigned long file;
    unsigned char place[16];
};
bool object_id_of(hid_t object, struct object_id *ret);
/* Of what a hard link in the file of that number leads to. */
struct object_id object_id_linked(unsigned long file, const H5L_info_t *link);

/* Texts by object. Zeroed: empty. */
struct object_texts {
    struct object_slot *slots;
    size_t n, n_slots;
};
/* NULL: it has none. */
const char *object_texts_find(const struct object_texts *texts, const struct object_id *id);
/* The first text of an object stays. False: no memory. */
bool object_texts_add(struct object_texts *texts, const struct object_id *id, const char *text);
void object_texts_deinit(struct object_texts *texts);
