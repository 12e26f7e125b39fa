/* Reloading the configuration file in a running daemon.
 *
 *     SIGHUP --> RELOADING=1 --> a thread reads and checks the file
 *            --> applied, or refused --> READY=1
 *
 * The file is read by a thread of the loop's, since a disk can be slow, into settings of their own;
 * so a file with any mistake changes nothing, and its mistakes are logged one by one. What can be
 * applied is copied into the running settings and told to the modules that keep a copy. What cannot
 * (the socket, the pool, the threads, the worker) is logged and keeps its value, and is so compared
 * again with the next reload.
 *
 * Limits that were lowered end nothing: who holds more keeps it and gets no more.
 *
 * Called by broker.c, on the signal and at the end.
 */
#define LOG_TOPIC "reload"
#include "daemon/broker/config/reload.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/host/notify.h"
#include "daemon/broker/config/options.h"
#include "proto/util.h"

#include <inttypes.h>
#include <string.h>

struct reload {
    struct broker *broker;
    bool is_busy, is_wanted_again;
    struct options running, next;
    struct config_faults faults;
};

static void refuse(const struct reload *reload)
{
    const struct config_faults *faults = &reload->faults;
    char text[SETTING_PATH_SIZE + CONFIG_FAULT_SIZE];
    for (unsigned i = 0; i < faults->n_kept; i++) {
        config_fault_format(&reload->next, faults, i, text, sizeof(text));
        log_error(NULL, "%s", text);
    }
    if (faults->n > faults->n_kept)
        log_error(NULL, "and %u mistakes more", faults->n - faults->n_kept);
    log_error(NULL, "the settings stay as they were");
}

/* Whether it is in force now. */
static bool apply_one(struct broker *broker, enum setting_id id, const struct options *next)
{
    const struct setting *setting = setting_at(id);
    struct options *o = &broker->options;
    char before[SETTING_VALUE_SIZE], after[SETTING_VALUE_SIZE];
    if (setting_is_same(setting, o, next)) {
        o->sources[id] = next->sources[id];
        return true;
    }
    setting_format(setting, o, before, sizeof(before));
    setting_format(setting, next, after, sizeof(after));
    if (!setting->is_reloadable) {
        log_warn(NULL, "%s = %s needs a restart; it stays %s", setting->name, after, before);
        return false;
    }
    log_info(NULL, "%s = %s; it was %s", setting->name, after, before);
    setting_copy(id, next, o);
    return true;
}

static void apply(struct reload *reload)
{
    unsigned n_left = 0;
    log_set_level(reload->next.log_level);
    for (unsigned i = 0; i < SETTING_COUNT; i++)
        n_left += !apply_one(reload->broker, (enum setting_id)i, &reload->next);
    if (memcmp(&reload->broker->options.policy, &reload->next.policy, sizeof(struct policy)) != 0)
        log_info(NULL, "sections of users and groups are others: %u; there were %u",
                 reload->next.policy.n_rules, reload->broker->options.policy.n_rules);
    reload->broker->options.policy = reload->next.policy;
    reload->broker->options.admin_gid = reload->next.admin_gid;
    broker_apply_limits(reload->broker);
    log_info(NULL, "the settings were read again; %u need a restart", n_left);
}

/* In a thread: touches nothing but *reload. */
static void on_work(void *userdata)
{
    struct reload *reload = userdata;
    options_reload(&reload->running, &reload->next, &reload->faults);
}

static void on_read(void *userdata)
{
    struct reload *reload = userdata;
    struct broker *broker = reload->broker;
    reload->is_busy = false;
    if (reload->faults.n > 0)
        refuse(reload);
    else
        apply(reload);
    notifier_send(broker->notifier, "READY=1");
    if (reload->is_wanted_again && !broker->is_draining)
        reload_begin(broker);
}

static void begin(struct reload *reload)
{
    struct broker *broker = reload->broker;
    reload->is_wanted_again = false;
    reload->running = broker->options;
    reload->faults = (struct config_faults){0};
    int r = loop_work(broker->loop, on_work, on_read, reload);
    if (r < 0) {
        log_error(NULL, "no thread to read the settings: %s", strerrordesc_np(-r));
        return;
    }
    reload->is_busy = true;
    notifier_send(broker->notifier, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, loop_now_ns() / 1000);
}

void reload_begin(struct broker *broker)
{
    if (!broker->reload) {
        broker->reload = calloc(1, sizeof(*broker->reload));
        if (!broker->reload) {
            log_error(NULL, "no memory to read the settings");
            return;
        }
        broker->reload->broker = broker;
    }
    if (broker->reload->is_busy)
        broker->reload->is_wanted_again = true;
    else
        begin(broker->reload);
}

struct reload *reload_free(struct reload *reload)
{
    if (reload && !reload->is_busy) /* else its thread still works on it: the process ends soon */
        free(reload);
    return NULL;
}
