/* An entry of the registry as JSON text, and back.
 *
 * The file is the user's own and may still be of another version of this program: keys that are
 * missing leave their fields zero, an entry without its numbers is none. It may also be older than
 * the machine's last start: then its agent is gone, and a number that a daemon has given since has
 * nothing to do with the present one in the file.
 *
 * Called by agents.c.
 */
#include "client/ctl/agent/agents.h"
#include "client/ctl/ctl.h"

#include "proto/error.h"
#include "proto/util.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Of the machine's start; "" where the kernel does not say. */
static const char *this_boot(void)
{
    static char id[48];
    _cleanup_fd_ int fd =
        id[0] ? -1 : open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, id, sizeof(id) - 1);
    if (n > 0)
        id[strcspn(id, "\n")] = '\0';
    return id;
}

static void add_u64(struct json_object *object, const char *key, uint64_t value)
{
    json_object_object_add(object, key, json_object_new_uint64(value));
}

char *agent_entry_write(const struct agent_entry *entry)
{
    struct json_object *object = json_object_new_object();
    if (!object)
        return NULL;
    add_u64(object, "first", entry->first);
    add_u64(object, "present", entry->present);
    add_u64(object, "pid", (uint64_t)entry->pid);
    add_u64(object, "pid_start", entry->pid_start);
    json_object_object_add(object, "boot", json_object_new_string(this_boot()));
    json_object_object_add(object, "socket", json_object_new_string(entry->socket));
    json_object_object_add(object, "agent", json_object_new_string(entry->agent));
    json_object_object_add(object, "has_ended", json_object_new_boolean(entry->has_ended));
    json_object_object_add(object, "last", ctl_status_json(&entry->last));
    const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY |
                                                                  JSON_C_TO_STRING_NOSLASHESCAPE);
    char *copy = text ? strdup(text) : NULL;
    json_object_put(object);
    return copy;
}

static uint64_t get_u64(struct json_object *object, const char *key)
{
    return json_object_get_uint64(json_object_object_get(object, key));
}

static void get_text(struct json_object *object, const char *key, char *ret, size_t n_bytes)
{
    const char *text = json_object_get_string(json_object_object_get(object, key));
    size_t n = text ? strlen(text) : 0;
    n = n < n_bytes ? n : n_bytes - 1;
    memcpy(ret, text ? text : "", n);
    ret[n] = '\0';
}

static void read_error(struct json_object *object, struct gad_error *ret)
{
    char word[64];
    if (!object)
        return;
    get_text(object, "code", word, sizeof(word));
    get_text(object, "argument", ret->argument, sizeof(ret->argument));
    get_text(object, "expected", ret->expected, sizeof(ret->expected));
    get_text(object, "found", ret->found, sizeof(ret->found));
    get_text(object, "message", ret->message, sizeof(ret->message));
    ret->status = error_from_word(word, (unsigned)strlen(word));
}

static void read_last(struct json_object *object, struct gad_job_status *ret)
{
    get_text(object, "state", ret->state, sizeof(ret->state));
    get_text(object, "label", ret->label, sizeof(ret->label));
    ret->tiles_done = get_u64(object, "tiles_done");
    ret->n_tiles = get_u64(object, "tiles");
    ret->read_bytes = get_u64(object, "read_bytes");
    ret->write_bytes = get_u64(object, "write_bytes");
    ret->running_s = json_object_get_double(json_object_object_get(object, "running_s"));
    read_error(json_object_object_get(object, "error"), &ret->error);
}

static void forget_agent(struct agent_entry *entry)
{
    entry->pid_start = 0;
    entry->present = entry->first;
}

bool agent_entry_read(const char *text, struct agent_entry *ret)
{
    struct json_object *object = json_tokener_parse(text);
    char boot[48];
    *ret = (struct agent_entry){0};
    if (json_object_is_type(object, json_type_object)) {
        ret->first = get_u64(object, "first");
        ret->present = get_u64(object, "present");
        ret->pid = (pid_t)get_u64(object, "pid");
        ret->pid_start = get_u64(object, "pid_start");
        get_text(object, "socket", ret->socket, sizeof(ret->socket));
        get_text(object, "agent", ret->agent, sizeof(ret->agent));
        ret->has_ended = json_object_get_boolean(json_object_object_get(object, "has_ended"));
        read_last(json_object_object_get(object, "last"), &ret->last);
        ret->last.job = ret->first;
        get_text(object, "boot", boot, sizeof(boot));
        if (strcmp(boot, this_boot()) != 0)
            forget_agent(ret);
    }
    json_object_put(object);
    return ret->first != 0;
}
