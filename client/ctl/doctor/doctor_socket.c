/* doctor: the socket, who may use it and who serves it; and the user's membership in its group.
 *
 * The checks follow the way of a connection: the path, the kind, the owner whom the client would
 * trust, the permission, somebody who listens. The group is looked up twice: in the database and in
 * this process, whose groups are those of the login.
 * Called by doctor.c.
 */
#include "client/ctl/doctor/doctor.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SERVICE_USER  "gpuarrayd"
#define SERVICE_GROUP "gpuarrayd"
#define MAX_GROUPS    1024

static bool is_trusted(uid_t uid)
{
    const struct passwd *service = getpwnam(SERVICE_USER);
    return uid == 0 || uid == geteuid() || (service && service->pw_uid == uid);
}

static void say_absent(struct doctor *d)
{
    char path[256], advice[400];
    facts_private_path("socket", path, sizeof(path));
    if (d->is_given) {
        snprintf(advice, sizeof(advice),
                 "start the daemon that GPUARRAYD_SOCKET names, or unset it: then the service or a "
                 "private daemon is used");
        doctor_say(d, FINDING_PROBLEM, advice, "there is no socket %s (GPUARRAYD_SOCKET)",
                   d->socket);
        return;
    }
    if (d->has_daemon) {
        doctor_say(d, FINDING_OK, NULL, "no service runs here; your private daemon serves %s",
                   d->facts.socket);
        return;
    }
    doctor_say(d, FINDING_NOTE,
               "sudo systemctl enable --now gpuarrayd.socket for one daemon for everybody; "
               "otherwise nothing: the first job starts a private one",
               "no service runs here (%s), and no private daemon (%s)", d->socket, path);
}

static void say_permission(struct doctor *d, const struct stat *st, bool is_hidden)
{
    char advice[CTL_HINT_SIZE];
    struct gad_error error = {.status = GAD_PERMISSION};
    snprintf(error.argument, sizeof(error.argument), "%s", d->socket);
    ctl_hint(&error, advice, sizeof(advice));
    if (is_hidden)
        doctor_say(d, FINDING_PROBLEM, advice, "the folder of %s is closed to you", d->socket);
    else
        doctor_say(d, FINDING_PROBLEM, advice, "you may not use %s: mode %04o, user %u, group %u",
                   d->socket, st->st_mode & 07777, st->st_uid, st->st_gid);
}

static void say_served(struct doctor *d, const struct stat *st)
{
    const struct passwd *owner = getpwuid(d->facts.uid);
    if ((st->st_mode & 0002) && !d->is_given)
        doctor_say(d, FINDING_WARNING, "SocketMode=0660 and SocketGroup=gpuarrayd in the unit",
                   "everybody on this machine may use %s (mode %04o)", d->socket,
                   st->st_mode & 07777);
    doctor_say(d, FINDING_OK, NULL, "%s, mode %04o, served by %s (process %d)", d->socket,
               st->st_mode & 07777, owner ? owner->pw_name : "an unknown user",
               (int)d->facts.listener);
}

void doctor_socket(struct doctor *d)
{
    struct stat st;
    char advice[160];
    if (stat(d->socket, &st)) {
        if (errno == EACCES)
            say_permission(d, &st, true);
        else
            say_absent(d);
    } else if (!S_ISSOCK(st.st_mode)) {
        doctor_say(d, FINDING_PROBLEM, "name the daemon's socket in GPUARRAYD_SOCKET, or unset it",
                   "%s is no socket", d->socket);
    } else if (!is_trusted(st.st_uid)) {
        snprintf(advice, sizeof(advice), "ask user %u what it is; nothing was sent to it",
                 st.st_uid);
        doctor_say(d, FINDING_PROBLEM, advice,
                   "%s belongs to user %u, neither root, nor " SERVICE_USER ", nor you", d->socket,
                   st.st_uid);
    } else if (access(d->socket, W_OK)) {
        say_permission(d, &st, false);
    } else if (!d->has_daemon && d->error.status == GAD_NO_DAEMON) {
        doctor_say(d, FINDING_PROBLEM,
                   "start the daemon again (systemctl restart gpuarrayd); a socket that was left "
                   "behind does no harm",
                   "nobody listens on %s", d->socket);
    } else if (d->has_daemon) {
        say_served(d, &st);
    } else {
        doctor_say(d, FINDING_NOTE, "see what is said of the daemon", "%s is there", d->socket);
    }
}

/* group --------------------------------------------------------------------------------------- */

static bool has_group(gid_t gid)
{
    gid_t groups[MAX_GROUPS];
    int n = getgroups(MAX_GROUPS, groups);
    bool is_found = getegid() == gid;
    for (int i = 0; i < n && !is_found; i++)
        is_found = groups[i] == gid;
    return is_found;
}

static bool database_has_group(const struct passwd *user, gid_t gid)
{
    gid_t groups[MAX_GROUPS];
    int n = MAX_GROUPS;
    bool is_found = false;
    if (getgrouplist(user->pw_name, user->pw_gid, groups, &n) < 0)
        return false;
    for (int i = 0; i < n && !is_found; i++)
        is_found = groups[i] == gid;
    return is_found;
}

/* The group that opens the socket; without a socket the one that the service would have. */
static bool find_group(const struct doctor *d, gid_t *ret_gid)
{
    struct stat st;
    const struct group *service;
    if (stat(d->socket, &st) == 0 && S_ISSOCK(st.st_mode) && (st.st_mode & 0060)) {
        *ret_gid = st.st_gid;
        return true;
    }
    if (d->is_given || !(service = getgrnam(SERVICE_GROUP)))
        return false;
    *ret_gid = service->gr_gid;
    return true;
}

void doctor_group(struct doctor *d)
{
    gid_t gid;
    char name[64], advice[200];
    const struct passwd *user = getpwuid(geteuid());
    if (!find_group(d, &gid) || !user) {
        doctor_say(d, FINDING_OK, NULL, "no group is asked for here");
        return;
    }
    const struct group *group = getgrgid(gid);
    snprintf(name, sizeof(name), "%s", group ? group->gr_name : "?");
    if (has_group(gid)) {
        doctor_say(d, FINDING_OK, NULL, "this process is in the group '%s'", name);
    } else if (database_has_group(user, gid)) {
        snprintf(advice, sizeof(advice), "log in again, or 'newgrp %s' in this shell", name);
        doctor_say(d, FINDING_WARNING, advice,
                   "%s is in the group '%s' by now, but this login began before", user->pw_name,
                   name);
    } else if (geteuid() == 0) {
        doctor_say(d, FINDING_OK, NULL, "root needs no group");
    } else {
        snprintf(advice, sizeof(advice), "sudo usermod -aG %s %s, then log in again", name,
                 user->pw_name);
        doctor_say(d, FINDING_NOTE, advice, "%s is not in the group '%s'", user->pw_name, name);
    }
}
