/* The rows of the table; settings.h has what can be asked of them. */
#pragma once

#include "daemon/broker/config/settings.h"

#include <stddef.h>

extern const struct setting settings_table[SETTING_COUNT];
