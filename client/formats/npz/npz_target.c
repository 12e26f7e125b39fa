/* Archives as outputs.
 *
 *     add       [header x, data x][header y, data y]      space is reserved, data are written
 *     publish   [header x, data x][header y, data y][copies of the others][directory][end]
 *
 * An archive is never changed where it lies: the new file takes its place in one step, so that
 * whoever reads it meets the old one or the new one. What the old one has is copied only then, from
 * the archive that has the name at that moment, under a lock: of two jobs that add to one archive
 * at the same time the second one copies what the first one has added. The lock keeps only
 * programs like us away.
 *
 * Members are copied as they lie there, packed or not. Their headers are written anew, since sizes
 * that stand behind the data would otherwise have to be found there.
 *
 * Called by npz_output.c. Arrays of one job share a target, and their job uses it from one thread.
 */
#include "client/formats/npz/npz_target.h"
#include "client/clock.h"
#include "client/formats/files/file_output.h"
#include "client/formats/files/file_source.h"
#include "client/formats/npz/npz_crc.h"
#include "client/formats/npz/npz_member.h"
#include "client/formats/npz/npz_pack.h"
#include "client/formats/npz/zip_write.h"
#include "proto/util.h"

#include <string.h>
#include <sys/file.h>

#define LOCK_WAIT_MS 5000
#define RETRY_MS     20
#define MAX_TRIES    20 /* to find nothing changed by others between two moments */
#define COPY_BYTES   (1u << 20)

struct npz_target {
    unsigned n_refs;
    struct file_output *output;
    char *path;
    uint64_t end; /* of the members' space */
    struct npz_new *members;
};

int npz_target_new(const char *path, const char *name, struct npz_target **ret_target,
                   struct gad_error *error)
{
    struct npz_target *target = calloc(1, sizeof(*target));
    char *copy = strdup(path);
    if (!target || !copy) {
        free(target);
        free(copy);
        return error_from_errno(error, ENOMEM, name, "output");
    }
    target->n_refs = 1;
    target->path = copy;
    int r = file_output_new(path, name, &target->output, error);
    if (r) {
        npz_target_unref(target);
        return r;
    }
    *ret_target = target;
    return 0;
}

struct npz_target *npz_target_ref(struct npz_target *target)
{
    target->n_refs++;
    return target;
}

struct npz_target *npz_target_unref(struct npz_target *target)
{
    if (!target || --target->n_refs > 0)
        return NULL;
    file_output_free(target->output);
    free(target->path);
    free(target);
    return NULL;
}

bool npz_target_is_for(const struct npz_target *target, const struct npz_target *other)
{
    return target == other || file_output_is_for(target->output, other->output);
}

void npz_target_sync(struct npz_target *target)
{
    file_output_sync(target->output);
}

int npz_target_fd(const struct npz_target *target)
{
    return file_output_fd(target->output);
}

/* What is there already ------------------------------------------------------------------------ */

/* ret_archive->fd is -1 where nothing has the name. */
static int open_current(const struct npz_target *target, const char *name,
                        struct npz_archive *ret_archive, struct gad_error *error)
{
    int fd = -1;
    *ret_archive = (struct npz_archive){.fd = -1};
    int r = file_output_open_current(target->output, &fd);
    if (r == -ENOENT)
        return 0;
    if (r)
        return file_path_error(error, -r, target->path, name);
    return npz_archive_read(fd, target->path, name, ret_archive, error);
}

/* Whether a member makes room for `new`: it is what the same name in a spec means. */
static bool is_replaced_by(const struct zip_member *member, const struct npz_new *new)
{
    size_t n = strlen(member->name);
    return strcmp(member->name, new->name) == 0 ||
           (strncmp(member->name, new->name, n) == 0 && strcmp(new->name + n, ".npy") == 0);
}

static bool is_replaced(const struct zip_member *member, const struct npz_target *target)
{
    for (const struct npz_new *new = target->members; new; new = new->next)
        if (is_replaced_by(member, new))
            return true;
    return false;
}

/* Whether the new members can be added to it. */
static int check_current(const struct npz_target *target, const struct npz_archive *archive,
                         struct gad_error *error)
{
    const struct zip_directory *directory = &archive->directory;
    if (directory->prefix_bytes > 0)
        return error_set(error, GAD_BAD_FORMAT, archive->name,
                         "'%.160s' has %llu bytes before its archive: it cannot be added to",
                         archive->path, (unsigned long long)directory->prefix_bytes);
    for (size_t i = 0; i < directory->n_members; i++) {
        const struct zip_member *member = &directory->members[i];
        if (member->flags & ZIP_FLAG_ENCRYPTED)
            return error_set(error, GAD_BAD_FORMAT, archive->name,
                             "'%.120s' has an encrypted member '%.100s': it cannot be added to",
                             archive->path, member->name);
        for (const struct npz_new *new = target->members; new; new = new->next)
            if (!new->replace && is_replaced_by(member, new))
                return error_set(error, GAD_EXISTS, archive->name,
                                 "there is an array '%.120s' already", member->name);
    }
    return 0;
}

/* Adding --------------------------------------------------------------------------------------- */

/* What is there will have to be copied too. */
static int check_added(const struct npz_target *target, const struct npz_new *member,
                       const char *name, struct gad_error *error)
{
    struct npz_archive archive;
    uint64_t n_copied = 0;
    int r = open_current(target, name, &archive, error);
    if (r)
        return r;
    if (archive.fd >= 0) {
        n_copied = (uint64_t)archive.st.st_size;
        r = check_current(target, &archive, error);
    }
    if (r == 0)
        r = file_check_room(npz_target_fd(target), n_copied + member->n_bytes, target->path, name,
                            error);
    npz_archive_close(&archive);
    return r;
}

static struct zip_record record_of(const struct npz_new *member)
{
    struct zip_record record =
        zip_record_stored(member->name, member->crc, member->n_bytes, member->header_offset);
    if (member->is_deflated) {
        record.method = ZIP_DEFLATED;
        record.packed_bytes = member->packed_bytes;
    }
    return record;
}

/* What is packed is never longer than it was, so its header has one length, whatever comes out. */
static int append_header(const struct npz_new *member, struct zip_bytes *bytes)
{
    struct zip_record record = record_of(member);
    zip_append_local(bytes, &record, !member->is_late);
    return bytes->is_lost ? -ENOMEM : 0;
}

/* Behind all others. */
static int set_place(const struct npz_target *target, struct npz_new *member)
{
    struct zip_bytes header = {.bytes = NULL};
    member->header_offset = target->end;
    int r = append_header(member, &header);
    member->data_offset = target->end + header.n_bytes;
    zip_bytes_deinit(&header);
    return r;
}

static int place(struct npz_target *target, struct npz_new *member, const char *name,
                 struct gad_error *error)
{
    uint64_t end;
    int r = set_place(target, member);
    if (r)
        return error_from_errno(error, -r, name, "output");
    if (__builtin_add_overflow(member->data_offset, member->n_bytes, &end))
        return error_set(error, GAD_NO_SPACE, name, "no file can be so large");
    r = file_output_reserve(target->output, target->end, end - target->end, name, error);
    if (r == 0)
        target->end = end;
    return r;
}

int npz_target_add(struct npz_target *target, struct npz_new *member, const char *name,
                   struct gad_error *error)
{
    member->next = target->members;
    target->members = member;
    int r = check_added(target, member, name, error);
    if (r == 0 && !member->is_late)
        r = place(target, member, name, error);
    if (r)
        npz_target_remove(target, member);
    return r;
}

void npz_target_remove(struct npz_target *target, struct npz_new *member)
{
    struct npz_new **at = &target->members;
    while (*at && *at != member)
        at = &(*at)->next;
    if (*at)
        *at = member->next;
}

/* Packing -------------------------------------------------------------------------------------- */

/* -EIO where the file that is copied has become shorter. */
static int copy_by_buffer(int from, uint64_t from_offset, int to, uint64_t to_offset,
                          uint64_t n_bytes)
{
    _cleanup_free_ char *buffer = malloc(COPY_BYTES);
    if (!buffer)
        return -ENOMEM;
    int r = 0;
    for (uint64_t done = 0; done < n_bytes && r == 0;) {
        size_t n = (size_t)min_u64(COPY_BYTES, n_bytes - done), n_read = 0;
        r = file_read(from, buffer, n, from_offset + done, &n_read);
        if (r == 0)
            r = n_read < n ? -EIO : file_write(to, buffer, n, to_offset + done);
        done += n;
    }
    return r;
}

/* By the kernel, which shares the bytes where the file system can. */
static int copy_bytes(int from, uint64_t from_offset, int to, uint64_t to_offset, uint64_t n_bytes)
{
    while (n_bytes > 0) {
        loff_t in = (loff_t)from_offset, out = (loff_t)to_offset;
        ssize_t n =
            copy_file_range(from, &in, to, &out, (size_t)min_u64(n_bytes, UINT64_C(1) << 30), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return copy_by_buffer(from, from_offset, to, to_offset, n_bytes);
        from_offset += (uint64_t)n;
        to_offset += (uint64_t)n;
        n_bytes -= (uint64_t)n;
    }
    return 0;
}

int npz_target_pack(struct npz_target *target, struct npz_new *member, int from, int level,
                    const char *name, struct gad_error *error)
{
    int r = set_place(target, member);
    const struct npz_packing packing = {
        .from = from,
        .to = npz_target_fd(target),
        .n_bytes = member->n_bytes,
        .to_offset = member->data_offset,
        .level = level,
    };
    member->packed_bytes = 0;
    if (r == 0 && level != NPZ_STORED)
        r = npz_pack(&packing, &member->packed_bytes, &member->crc);
    member->is_deflated = r == 0 && member->packed_bytes > 0;
    if (r == 0 && !member->is_deflated) {
        member->packed_bytes = member->n_bytes;
        r = copy_bytes(from, 0, packing.to, packing.to_offset, member->n_bytes);
        if (r == 0)
            r = npz_crc_of(from, 0, member->n_bytes, &member->crc);
    }
    if (r)
        return file_path_error(error, -r, target->path, name);
    target->end = member->data_offset + member->packed_bytes;
    return 0;
}

/* Publishing ---------------------------------------------------------------------------------- */

struct writing { /* of one file */
    const struct npz_target *target;
    const struct npz_archive *current; /* fd -1: none */
    uint64_t end;
    struct zip_bytes directory;
    uint64_t n_members;
    struct zip_bytes header;
    struct zip_local *local;
};

static int write_new(struct writing *writing, const struct npz_new *member)
{
    struct zip_record record = record_of(member);
    writing->header.n_bytes = 0;
    int r = append_header(member, &writing->header);
    if (r == 0)
        r = file_write(npz_target_fd(writing->target), writing->header.bytes,
                       writing->header.n_bytes, member->header_offset);
    zip_append_central(&writing->directory, &record, NULL);
    writing->n_members++;
    return r;
}

/* The fields of both headers differ; `kept` has room for either. */
static int copy_member(struct writing *writing, const struct zip_member *member, uint8_t *kept,
                       struct gad_error *error)
{
    const struct npz_archive *current = writing->current;
    const uint8_t *old = current->directory.bytes + member->record_at;
    struct zip_local *local = writing->local;
    struct zip_record record = {
        .name = member->name,
        .version = zip_u16(old + 6),
        .flags = member->flags & (uint16_t)~ZIP_FLAG_DESCRIPTOR,
        .method = member->method,
        .time = zip_u16(old + 12),
        .date = zip_u16(old + 14),
        .crc = member->crc,
        .packed_bytes = member->packed_bytes,
        .size_bytes = member->size_bytes,
        .header_offset = writing->end,
        .extra = kept,
    };
    int r = zip_member_local(&current->source, member, current->name, local, error);
    if (r)
        return r;
    record.n_extra = zip_extra_keep(local->extra, local->n_extra, kept);
    writing->header.n_bytes = 0;
    zip_append_local(&writing->header, &record, zip_extra_is_aligned(local->extra, local->n_extra));
    record.n_extra =
        zip_extra_keep(old + ZIP_CENTRAL_BYTES + zip_u16(old + 28), zip_u16(old + 30), kept);
    zip_append_central(&writing->directory, &record, old);
    writing->n_members++;
    if (writing->header.is_lost)
        return -ENOMEM;
    int fd = npz_target_fd(writing->target);
    uint64_t data_at = writing->end + writing->header.n_bytes;
    r = file_write(fd, writing->header.bytes, writing->header.n_bytes, writing->end);
    if (r == 0)
        r = copy_bytes(current->fd, local->data_offset, fd, data_at, member->packed_bytes);
    writing->end = data_at + member->packed_bytes;
    return r;
}

static int copy_members(struct writing *writing, struct gad_error *error)
{
    const struct zip_directory *directory = &writing->current->directory;
    _cleanup_free_ uint8_t *kept = malloc(UINT16_MAX);
    writing->local = malloc(sizeof(*writing->local));
    int r = kept && writing->local ? 0 : -ENOMEM;
    for (size_t i = 0; i < directory->n_members && r == 0; i++)
        if (!is_replaced(&directory->members[i], writing->target))
            r = copy_member(writing, &directory->members[i], kept, error);
    free_ptr(&writing->local);
    return r;
}

static int write_all(struct writing *writing, struct gad_error *error)
{
    const struct npz_target *target = writing->target;
    const struct zip_directory *current = &writing->current->directory;
    int fd = npz_target_fd(target);
    int r = 0;
    writing->end = target->end;
    for (const struct npz_new *new = target->members; new &&r == 0; new = new->next)
        r = write_new(writing, new);
    if (r == 0 && writing->current->fd >= 0)
        r = copy_members(writing, error);
    if (r == 0) {
        zip_append_end(&writing->directory, writing->n_members, writing->directory.n_bytes,
                       writing->end, current->comment, current->n_comment);
        r = writing->directory.is_lost ? -ENOMEM : 0;
    }
    if (r == 0)
        r = file_write(fd, writing->directory.bytes, writing->directory.n_bytes, writing->end);
    writing->end += writing->directory.n_bytes;
    if (r == 0 && ftruncate(fd, (off_t)writing->end) < 0) /* of an earlier, longer try */
        r = -errno;
    return r;
}

static int write_file(struct npz_target *target, const struct npz_archive *current,
                      const char *name, struct gad_error *error)
{
    struct writing writing = {.target = target, .current = current};
    int r = 0;
    if (current->fd >= 0)
        r = file_output_reserve(target->output, target->end, (uint64_t)current->st.st_size, name,
                                error);
    if (r == 0)
        r = write_all(&writing, error);
    zip_bytes_deinit(&writing.directory);
    zip_bytes_deinit(&writing.header);
    return r < 0 ? file_path_error(error, -r, target->path, name) : r;
}

/* Whoever has the lock replaces the file: who waited has one that is not current any more. */
static int lock(int fd, const struct npz_target *target, const char *name, struct gad_error *error)
{
    for (int ms = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; ms += RETRY_MS) {
        if (errno != EWOULDBLOCK)
            return 0; /* a file system without such locks */
        if (ms >= LOCK_WAIT_MS)
            return error_set(error, GAD_BUSY, name, "another program has '%.160s' locked",
                             target->path);
        clock_sleep_ms(RETRY_MS);
    }
    return 0;
}

/* ret_is_done false: somebody else was faster, all is to be looked at again. */
static int publish_once(struct npz_target *target, const char *name, bool *ret_is_done,
                        struct gad_error *error)
{
    _cleanup_fd_ int locked_fd = -1; /* closed last: with it the lock goes */
    struct npz_archive current;
    *ret_is_done = false;
    int r = file_output_open_current(target->output, &locked_fd);
    if (r && r != -ENOENT)
        return file_path_error(error, -r, target->path, name);
    bool is_new = r == -ENOENT;
    r = is_new ? 0 : lock(locked_fd, target, name, error);
    if (r)
        return r;
    if (!is_new && !file_output_is_current(target->output, locked_fd))
        return 0;
    r = open_current(target, name, &current, error);
    if (r == 0 && current.fd >= 0)
        r = check_current(target, &current, error);
    if (r == 0)
        r = write_file(target, &current, name, error);
    if (r == 0)
        r = file_output_commit(target->output, current.fd < 0, name, error);
    *ret_is_done = r == 0;
    if (r == GAD_EXISTS && current.fd < 0)
        r = 0;
    npz_archive_close(&current);
    return r;
}

int npz_target_publish(struct npz_target *target, const char *name, struct gad_error *error)
{
    bool is_done = false;
    for (const struct npz_new *new = target->members; new; new = new->next)
        if (!new->is_ready)
            return 0;
    for (int i = 0; !is_done && i < MAX_TRIES; i++) {
        int r = publish_once(target, name, &is_done, error);
        if (r)
            return r;
    }
    return is_done ? 0
                   : error_set(error, GAD_BUSY, name, "others replace '%.160s' all the time",
                               target->path);
}
