/* What users may hold, and the weight of their jobs, as the settings say (config/policy.h). */
#pragma once

#include "daemon/broker/config/settings.h"
#include "daemon/broker/sessions/account.h"

struct broker;

/* Of all users together, and of each of whom no rule speaks. */
void terms_limits(const struct options *o, struct account_limits *ret);
/* Sets those of the user who has connected, by the groups that the kernel says; the user holds
 * something. Whether it is one of the admins' group. */
bool terms_of_user(struct broker *broker, int fd, uid_t uid);
/* The settings are others: all limits, and those of users who are connected. Of one who only has
 * jobs left the terms stay as they were until the next connection. */
void terms_apply(struct broker *broker);
