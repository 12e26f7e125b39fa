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
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_SIZE  16384 /* of a user or group with its members */
#define SHOWN_CHARS 40

static const char user_prefix[] = "user ", group_prefix[] = "group ";

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool policy_is_section(const char *name)
{
    return has_prefix(name, user_prefix) || has_prefix(name, group_prefix);
}

bool policy_find_id(const char *name, bool is_group, uint32_t *ret_id)
{
    char entry[ENTRY_SIZE], *end;
    struct passwd user, *found_user = NULL;
    struct group group, *found_group = NULL;
    unsigned long number;
    if (is_group && getgrnam_r(name, &group, entry, sizeof(entry), &found_group) == 0 &&
        found_group)
        return *ret_id = group.gr_gid, true;
    if (!is_group && getpwnam_r(name, &user, entry, sizeof(entry), &found_user) == 0 && found_user)
        return *ret_id = user.pw_uid, true;
    number = strtoul(name, &end, 10);
    *ret_id = (uint32_t)number;
    return isdigit((unsigned char)name[0]) && *end == '\0' && number < UINT32_MAX;
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
    if (strlen(name) >= SETTING_WORD_SIZE || !policy_find_id(name, is_group, &id)) {
        config_fault(faults, line, "expected a %s's name or number, found '%.*s'", kind,
                     SHOWN_CHARS, name);
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

static bool has_group(const gid_t *groups, unsigned n_groups, uint32_t id)
{
    for (unsigned i = 0; i < n_groups; i++)
        if (groups[i] == id)
            return true;
    return false;
}

void policy_find(const struct options *o, uid_t uid, const gid_t *groups, unsigned n_groups,
                 uint64_t ret_values[SETTING_N_OF_USERS])
{
    const struct policy *p = &o->policy;
    for (unsigned i = 0; i < SETTING_N_OF_USERS; i++) {
        const struct policy_rule *best = NULL;
        for (unsigned k = 0; k < p->n_rules; k++) {
            const struct policy_rule *rule = &p->rules[k];
            bool is_own = !rule->is_group && rule->id == uid;
            if (rule->lines[i] > 0 &&
                (is_own || (!best && rule->is_group && has_group(groups, n_groups, rule->id))))
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
