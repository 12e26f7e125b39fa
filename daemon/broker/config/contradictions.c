/* Limits that contradict each other, or this machine.
 *
 * A part that is larger than its whole would never be reached: whoever wrote it expects something
 * that will not happen. So it is refused, with both numbers and where the other one comes from. A
 * default that is too large for a whole that somebody made smaller is no mistake of theirs; where
 * it would have an effect it is made smaller too.
 *
 * Called by options.c, on the command line and the file together.
 */
#include "daemon/broker/config/contradictions.h"
#include "daemon/broker/config/policy.h"
#include "proto/system/units.h"
#include "proto/util.h"

#include <string.h>
#include <sys/resource.h>

#define TEXT_SIZE 64

static bool is_given(const struct options *o, enum setting_id id)
{
    return o->sources[id].origin != SETTING_DEFAULT;
}

static unsigned line_of(const struct options *o, enum setting_id id)
{
    const struct setting_source *source = &o->sources[id];
    return source->origin == SETTING_OF_FILE ? source->line : 0;
}

/* "max-active, which is 8 (line 12)" */
static void describe(const struct options *o, enum setting_id id, char *text, size_t n_bytes)
{
    char value[TEXT_SIZE], where[TEXT_SIZE];
    const struct setting_source *source = &o->sources[id];
    setting_format(setting_at(id), o, value, sizeof(value));
    if (source->origin == SETTING_OF_FILE)
        snprintf(where, sizeof(where), "line %u", source->line);
    else
        snprintf(where, sizeof(where), "%s",
                 source->origin == SETTING_DEFAULT ? "the default" : "the command line");
    snprintf(text, n_bytes, "%s, which is %s (%s)", setting_at(id)->name, value, where);
}

static void refuse(const struct options *o, enum setting_id id, const char *whole,
                   struct config_faults *faults)
{
    char value[TEXT_SIZE];
    setting_format(setting_at(id), o, value, sizeof(value));
    config_fault(faults, line_of(o, id), "%s: expected at most %s, found %s", setting_at(id)->name,
                 whole, value);
}

static void check_queue(struct options *o, struct config_faults *faults)
{
    char active[TEXT_SIZE * 3], queue[TEXT_SIZE * 3], both[TEXT_SIZE * 7];
    describe(o, SETTING_MAX_ACTIVE, active, sizeof(active));
    describe(o, SETTING_MAX_QUEUE, queue, sizeof(queue));
    snprintf(both, sizeof(both), "the sum of %s, and %s", queue, active);
    if (!is_given(o, SETTING_USER_ACTIVE))
        o->user_active = (unsigned)min_u64(o->user_active, o->max_active);
    else if (o->user_active > o->max_active)
        refuse(o, SETTING_USER_ACTIVE, active, faults);
    if (is_given(o, SETTING_USER_JOBS) &&
        o->user_jobs > (uint64_t)o->max_queue + (uint64_t)o->max_active)
        refuse(o, SETTING_USER_JOBS, both, faults);
}

/* A size that was given, and is more than `whole` has. */
static void check_part(const struct options *o, enum setting_id id, uint64_t whole_bytes,
                       const char *whole, struct config_faults *faults)
{
    const struct setting *s = setting_at(id);
    uint64_t n_bytes = *(const uint64_t *)(const void *)((const char *)o + s->offset);
    if (is_given(o, id) && n_bytes != OPTIONS_AUTO && n_bytes > whole_bytes)
        refuse(o, id, whole, faults);
}

static void check_memory(const struct options *o, struct config_faults *faults)
{
    static const enum setting_id sizes[] = {SETTING_POOL, SETTING_PINNED_BYTES,
                                            SETTING_REGISTER_BYTES, SETTING_REGION_LIMIT,
                                            SETTING_USER_REQUESTS};
    char memory[TEXT_SIZE], whole[TEXT_SIZE * 2];
    units_format_size(units_memory_bytes(), memory, sizeof(memory));
    snprintf(whole, sizeof(whole), "the memory of this machine, %s", memory);
    for (unsigned i = 0; i < ARRAY_LENGTH(sizes); i++)
        check_part(o, sizes[i], units_memory_bytes(), whole, faults);
}

/* A piece passes both kinds of memory, and as many as the depth says have to be there. */
static void check_device(const struct options *o, struct config_faults *faults)
{
    static const enum setting_id wholes[] = {SETTING_DEVICE_BYTES, SETTING_PINNED_BYTES};
    const uint64_t values[] = {o->device_bytes, o->pinned_bytes};
    char whole[TEXT_SIZE * 3], least[TEXT_SIZE];
    for (unsigned i = 0; i < ARRAY_LENGTH(wholes); i++) {
        if (!is_given(o, wholes[i]) || values[i] == OPTIONS_AUTO)
            continue;
        describe(o, wholes[i], whole, sizeof(whole));
        check_part(o, SETTING_CHUNK_BYTES, values[i], whole, faults);
        uint64_t chunk_bytes = o->chunk_bytes == OPTIONS_AUTO ? 0 : o->chunk_bytes;
        if (chunk_bytes == 0 || chunk_bytes > values[i] || o->device_depth == 0 ||
            o->device_depth <= values[i] / chunk_bytes)
            continue;
        units_format_size(chunk_bytes * o->device_depth, least, sizeof(least));
        config_fault(faults, line_of(o, SETTING_DEVICE_DEPTH),
                     "device-depth: expected pieces that fit %s; found %u of chunk-bytes, "
                     "together %s",
                     whole, o->device_depth, least);
    }
}

static void check_files(const struct options *o, struct config_faults *faults)
{
    struct rlimit files;
    char whole[TEXT_SIZE * 2];
    if (!is_given(o, SETTING_USER_DESCRIPTORS) || getrlimit(RLIMIT_NOFILE, &files) < 0 ||
        o->user_descriptors <= files.rlim_max)
        return;
    snprintf(whole, sizeof(whole), "the descriptors that the daemon may have, %llu",
             (unsigned long long)files.rlim_max);
    refuse(o, SETTING_USER_DESCRIPTORS, whole, faults);
}

/* The same bounds for single users and groups. */
static void check_rules(const struct options *o, struct config_faults *faults)
{
    struct rlimit files = {.rlim_max = RLIM_INFINITY};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    const struct {
        enum setting_id id;
        uint64_t most;
        const char *whole;
    } bounds[] = {
        {SETTING_USER_JOBS, (uint64_t)o->max_queue + (uint64_t)o->max_active,
         "max-queue and max-active together"},
        {SETTING_USER_REQUESTS, units_memory_bytes(), "the memory of this machine"},
        {SETTING_REGION_LIMIT, units_memory_bytes(), "the memory of this machine"},
        {SETTING_USER_DESCRIPTORS, files.rlim_max, "the descriptors that the daemon may have"},
    };
    for (unsigned k = 0; k < o->policy.n_rules; k++)
        for (unsigned i = 0; i < ARRAY_LENGTH(bounds); i++) {
            const struct policy_rule *rule = &o->policy.rules[k];
            unsigned place = (unsigned)(bounds[i].id - SETTING_USER_WEIGHT);
            if (rule->lines[place] > 0 && rule->values[place] > bounds[i].most)
                config_fault(
                    faults, rule->lines[place], "%s: expected at most %s, %llu; found %llu",
                    setting_at(bounds[i].id)->name, bounds[i].whole,
                    (unsigned long long)bounds[i].most, (unsigned long long)rule->values[place]);
        }
}

static void find_admin_group(struct options *o, struct config_faults *faults)
{
    uint32_t id = (gid_t)-1;
    int r = o->admin_group[0] ? policy_find_id(o->admin_group, true, &id) : 0;
    if (r)
        policy_fault_id(faults, line_of(o, SETTING_ADMIN_GROUP), "admin-group: ", "group",
                        o->admin_group, r);
    o->admin_gid = r ? (gid_t)-1 : id;
}

void contradictions_check(struct options *o, struct config_faults *faults)
{
    check_queue(o, faults);
    check_memory(o, faults);
    check_device(o, faults);
    check_files(o, faults);
    check_rules(o, faults);
    find_admin_group(o, faults);
}
