/* What the file says of single users and of groups: sections [user NAME] and [group NAME], which
 * have the settings of [users]. */
#pragma once

#include "daemon/broker/config/config.h"

/* A user's or group's name, or a number: 0, -ENOENT, or why the system's lists do not answer. They
 * are as slow as they are. */
int policy_find_id(const char *name, bool is_group, uint32_t *ret_id) GAD_MUST_CHECK;
/* The fault of a name that was not found; `what`: "SETTING: " or "". */
void policy_fault_id(struct config_faults *faults, unsigned line, const char *what,
                     const char *kind, const char *name, int r);
bool policy_is_section(const char *name);
/* The rule of such a section; NULL: the mistake went to the faults. */
struct policy_rule *policy_add(struct policy *policy, const char *section, unsigned line,
                               struct config_faults *faults);
/* NAME = VALUE in that section. */
void policy_set(struct policy_rule *rule, const char *name, const char *value, unsigned line,
                struct config_faults *faults);

/* What holds for a user, in the order of the settings: the own rule, then the first one of a group
 * that says something, then [users]. */
void policy_find(const struct options *o, uid_t uid, const gid_t *groups, unsigned n_groups,
                 uint64_t ret_values[SETTING_N_OF_USERS]);
/* The most that anybody may have of it. */
uint64_t policy_most(const struct options *o, enum setting_id id);
