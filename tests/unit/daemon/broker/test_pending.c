/* Open requests: ids find their objects once, never after they were used again. */
#include "daemon/broker/workers/pending.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

Test(pending, an_id_finds_its_object_once)
{
    struct pending p = {0};
    uint32_t id;
    int object;
    void *found = NULL;

    cr_assert(eq(int, pending_add(&p, PENDING_JOB, &object, &id), 0));
    cr_assert(eq(int, pending_take(&p, id, &found), PENDING_JOB));
    cr_assert(eq(ptr, found, &object));
    cr_assert(eq(int, pending_take(&p, id, &found), PENDING_NONE));
    pending_deinit(&p);
}

Test(pending, an_old_id_does_not_find_who_came_after)
{
    struct pending p = {0};
    uint32_t old, fresh;
    void *found;

    cr_assert(eq(int, pending_add(&p, PENDING_JOB, NULL, &old), 0));
    cr_assert(eq(int, pending_take(&p, old, &found), PENDING_JOB));
    cr_assert(eq(int, pending_add(&p, PENDING_REGION, NULL, &fresh), 0));
    cr_assert(ne(u32, fresh, old));
    cr_assert(eq(int, pending_take(&p, old, &found), PENDING_NONE));
    cr_assert(eq(int, pending_take(&p, fresh, &found), PENDING_REGION));
    pending_deinit(&p);
}

Test(pending, a_forgotten_object_is_null_and_its_id_still_open)
{
    struct pending p = {0};
    uint32_t id;
    int object;
    void *found = &object;

    cr_assert(eq(int, pending_add(&p, PENDING_STATS, &object, &id), 0));
    pending_forget(&p, id);
    pending_forget(&p, 12345);
    cr_assert(eq(int, pending_take(&p, id, &found), PENDING_STATS));
    cr_assert(eq(ptr, found, NULL));
    pending_deinit(&p);
}

Test(pending, ids_out_of_thin_air_find_nothing)
{
    struct pending p = {0};
    void *found;

    cr_assert(eq(int, pending_take(&p, 0, &found), PENDING_NONE));
    cr_assert(eq(int, pending_take(&p, UINT32_MAX, &found), PENDING_NONE));
}

Test(pending, holds_65536_and_no_more)
{
    struct pending p = {0};
    uint32_t id, first = 0;
    void *found;

    for (unsigned i = 0; i < 65536; i++)
        cr_assert(eq(int, pending_add(&p, PENDING_JOB, NULL, i ? &id : &first), 0));
    cr_assert(eq(int, pending_add(&p, PENDING_JOB, NULL, &id), -EAGAIN));
    cr_assert(eq(int, pending_take(&p, first, &found), PENDING_JOB));
    cr_assert(eq(int, pending_add(&p, PENDING_JOB, NULL, &id), 0));
    pending_deinit(&p);
}
