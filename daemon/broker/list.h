/* Intrusive doubly linked lists: a head and links are the same struct. A link that is in no list
 * points at itself, so removing twice is harmless. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

#define list_entry(link, type, member) ((type *)((char *)(link)-offsetof(type, member)))

#define list_for_each(it, head) for (struct list *it = (head)->next; it != (head); it = it->next)

/* `it` may be removed in the body; its successor may not. */
#define list_for_each_safe(it, following, head)                                                    \
    for (struct list *it = (head)->next, *following = it->next; it != (head);                      \
         it = following, following = it->next)

static inline void list_init(struct list *l)
{
    l->next = l->prev = l;
}

static inline bool list_is_empty(const struct list *head)
{
    return head->next == head;
}

static inline bool list_is_linked(const struct list *link)
{
    return link->next != link;
}

static inline struct list *list_first(const struct list *head) /* NULL when empty */
{
    return head->next == head ? NULL : head->next;
}

static inline void list_insert_before(struct list *where, struct list *link)
{
    link->prev = where->prev;
    link->next = where;
    where->prev->next = link;
    where->prev = link;
}

static inline void list_push_back(struct list *head, struct list *link)
{
    list_insert_before(head, link);
}

static inline void list_push_front(struct list *head, struct list *link)
{
    list_insert_before(head->next, link);
}

static inline void list_remove(struct list *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    list_init(link);
}
