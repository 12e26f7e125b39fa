/* Rules for users and groups.
 *
 *     [users]              everybody                 user-weight = 1
 *     [group staff]        who is in it              user-weight = 4, user-jobs = 1000
 *     [user alice]         one user                  user-jobs = 10000
 *
 * alice of staff has weight 4 and 10000 jobs. Names are looked up when the file is read, so a user
 * who is made later is known after the next reload. Which groups a user is in is not looked up here
 * at all: the kernel says it of who connects (sessions/terms.c).
 *
 * Called by config.c, contradictions.c and terms.c.
 */
#include "daemon/broker/config/policy.h"
#include "proto/util.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_SIZE     16384 /* of a user or group with its members */
#define ENTRY_MAX_SIZE (64u << 20)
#define SHOWN_CHARS    40

static const char user_prefix[] = "user ", group_prefix[] = "group ";

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool policy_is_section(const char *name)
{
    return has_prefix(name, user_prefix) || has_prefix(name, group_prefix);
}

/* 0, -ENOENT, or why the system's lists do not answer. Groups with many members have long entries.
 */
static int look_up(const char *name, bool is_group, uint32_t *ret_id)
{
    struct passwd user, *found_user = NULL;
    struct group group, *found_group = NULL;
    int r = ERANGE;
    for (size_t n = ENTRY_SIZE; r == ERANGE && n <= ENTRY_MAX_SIZE; n *= 4) {
        char *entry = malloc(n);
        if (!entry)
            return -ENOMEM;
        r = is_group ? getgrnam_r(name, &group, entry, n, &found_group)
                     : getpwnam_r(name, &user, entry, n, &found_user);
        free(entry);
    }
    if (found_group || found_user)
        *ret_id = is_group ? group.gr_gid : user.pw_uid;
    else if (r == 0)
        r = ENOENT;
    return -r;
}

int policy_find_id(const char *name, bool is_group, uint32_t *ret_id)
{
    char *end;
    int r = look_up(name, is_group, ret_id);
    if (r == 0 || !isdigit((unsigned char)name[0]))
        return r;
    errno = 0;
    unsigned long number = strtoul(name, &end, 10);
    if (*end != '\0' || errno != 0 || number >= UINT32_MAX)
        return -ENOENT;
    *ret_id = (uint32_t)number;
    return 0;
}

void policy_fault_id(struct config_faults *faults, unsigned line, const char *what,
                     const char *kind, const char *name, int r)
{
    bool is_missing = r == -ENOENT;
    config_fault(faults, line, "%sexpected a %s's name or number, found '%.*s'%s%s%s", what, kind,
                 SHOWN_CHARS, name,
                 is_missing ? "" : " (not looked up: ", is_missing ? "" : strerrordesc_np(-r),
                 is_missing ? "" : ")");
}

static const struct policy_rule *find_rule(const struct policy *policy, bool is_group, uint32_t id)
{
    for (unsigned i = 0; i < policy->n_rules; i++)
        if (policy->rules[i].is_group == is_group && policy->rules[i].id == id)
            return &policy->rules[i];
    return NULL;
}

struct policy_rule *policy_add(struct policy *policy, const char *section, unsigned line,
                               struct config_faults *faults)
{
    bool is_group = has_prefix(section, group_prefix);
    const char *kind = is_group ? "group" : "user", *name = section + strlen(kind);
    uint32_t id = 0;
    while (isspace((unsigned char)*name))
        name++;
    int r = strlen(name) < SETTING_WORD_SIZE ? policy_find_id(name, is_group, &id) : -ENOENT;
    if (r) {
        policy_fault_id(faults, line, "", kind, name, r);
        return NULL;
    }
    const struct policy_rule *other = find_rule(policy, is_group, id);
    if (other) {
        config_fault(faults, line, "expected %s %s once, found again as '%s'", kind, other->name,
                     name);
        return NULL;
    }
    if (policy->n_rules == POLICY_MAX_RULES) {
        config_fault(faults, line, "expected at most %u sections of users and groups, found more",
                     POLICY_MAX_RULES);
        return NULL;
    }
    struct policy_rule *rule = &policy->rules[policy->n_rules++];
    *rule = (struct policy_rule){.is_group = is_group, .id = id};
    memcpy(rule->name, name, strlen(name) + 1);
    return rule;
}

void policy_set(struct policy_rule *rule, const char *name, const char *value, unsigned line,
                struct config_faults *faults)
{
    char expected[160];
    struct options scratch;
    enum setting_id id = setting_find(name);
    unsigned i = (unsigned)id - SETTING_USER_WEIGHT;
    if (id < SETTING_USER_WEIGHT || i >= SETTING_N_OF_USERS) {
        const char *nearest = id == SETTING_COUNT ? setting_suggest(name) : NULL;
        config_fault(faults, line, "%s: expected a setting of [users] here%s%s%s", name,
                     nearest ? "; did you mean '" : "", nearest ? nearest : "",
                     nearest ? "'?" : "");
    } else if (rule->lines[i] > 0) {
        config_fault(faults, line, "%s: expected once, found again after line %u", name,
                     rule->lines[i]);
    } else if (!setting_parse(setting_at(id), value, &scratch, expected, sizeof(expected))) {
        config_fault(faults, line, "%s: expected %s; found '%.*s'", name, expected, SHOWN_CHARS,
                     value);
    } else {
        rule->values[i] = setting_number(setting_at(id), &scratch);
        rule->lines[i] = line;
    }
}

/* Which rules are about the user, bits: the groups of one who has very many are looked through
 * once, by whoever connects. */
static uint64_t find_rules(const struct policy *p, uid_t uid, const gid_t *groups,
                           unsigned n_groups)
{
    uint64_t rules = 0;
    for (unsigned k = 0; k < p->n_rules; k++) {
        const struct policy_rule *rule = &p->rules[k];
        bool is_about = !rule->is_group && rule->id == uid;
        for (unsigned i = 0; rule->is_group && !is_about && i < n_groups; i++)
            is_about = groups[i] == rule->id;
        rules |= (uint64_t)is_about << k;
    }
    return rules;
}

void policy_find(const struct options *o, uid_t uid, const gid_t *groups, unsigned n_groups,
                 uint64_t ret_values[SETTING_N_OF_USERS])
{
    _Static_assert(POLICY_MAX_RULES <= 64, "a bit each");
    uint64_t rules = find_rules(&o->policy, uid, groups, n_groups);
    for (unsigned i = 0; i < SETTING_N_OF_USERS; i++) {
        const struct policy_rule *best = NULL;
        for (uint64_t left = rules; left != 0; left &= left - 1) {
            const struct policy_rule *rule = &o->policy.rules[__builtin_ctzll(left)];
            if (rule->lines[i] > 0 && (!best || !rule->is_group))
                best = rule;
        }
        enum setting_id id = (enum setting_id)(SETTING_USER_WEIGHT + i);
        ret_values[i] = best ? best->values[i] : setting_number(setting_at(id), o);
    }
}

uint64_t policy_most(const struct options *o, enum setting_id id)
{
    uint64_t most = setting_number(setting_at(id), o);
    for (unsigned k = 0; k < o->policy.n_rules; k++)
        most = max_u64(most, o->policy.rules[k].values[id - SETTING_USER_WEIGHT]);
    return most;
}
