/* Descriptions of shared scans, and chunks as they say.
 *
 * A description is a client's: whatever its bytes are, what is read from it is a pipeline of known
 * codecs with so many values each, which are checked where they meet a chunk, as those of a file
 * are. An entry is looked at when its chunk is decoded: one that lies outside of its file or claims
 * too much is that chunk's failure alone.
 *
 * Files are read from whole pages into whole pages: their descriptors are shared with the client
 * that handed them over, which may switch O_DIRECT on at any time.
 *
 * Called by the scan's process; made by its readers.
 */
#include "client/scan/scan_description.h"
#include "proto/util.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096u

/* Reading -------------------------------------------------------------------------------------- */

static bool is_text(const char *text, size_t room)
{
    return memchr(text, '\0', room) != NULL;
}

static bool read_dtype(const char *text, size_t room, enum dtype *ret)
{
    bool is_swapped = false;
    *ret = DTYPE_BOOL;
    if (text[0] == '\0')
        return true;
    return is_text(text, room) &&
           dtype_from_typestr(text, strlen(text), ret, &is_swapped, NULL) == 0 && !is_swapped;
}

static int read_step(const struct scan_step *step, unsigned place, struct codec_step *ret,
                     struct gad_error *error)
{
    const struct codec *codec =
        is_text(step->codec, sizeof(step->codec)) ? codec_of_name(step->codec) : NULL;
    if (!codec || !codec->decode) {
        error_set(error, GAD_BAD_ARGUMENT, "description", "step %u: there is no such codec", place);
        error_expected(error, "a codec that this daemon has");
        error_found(error, "%.*s", (int)sizeof(step->codec), step->codec);
        return GAD_BAD_ARGUMENT;
    }
    *ret = (struct codec_step){.codec = codec,
                               .n_values = step->n_values,
                               .is_optional = step->is_optional != 0,
                               .scale = step->scale,
                               .offset = step->offset};
    if (step->n_values > SCAN_MAX_VALUES ||
        !read_dtype(step->dtype, sizeof(step->dtype), &ret->dtype) ||
        !read_dtype(step->stored, sizeof(step->stored), &ret->stored))
        return error_set(error, GAD_BAD_ARGUMENT, "description",
                         "step %u: %s: parameters that no codec has", place, codec->name);
    memcpy(ret->values, step->values, step->n_values * sizeof(*step->values));
    return 0;
}

static int read_kind(const struct scan_head *head, const struct scan_kind *kind,
                     const struct scan_step *steps, struct codec_packing *ret,
                     struct gad_error *error)
{
    int r = 0;
    if (kind->first_step > head->n_steps || kind->n_steps > head->n_steps - kind->first_step ||
        kind->n_steps > SCAN_MAX_STEPS || kind->is_stream > 1 || kind->zero != 0 ||
        (kind->is_stream && kind->n_steps > 0))
        return error_set(error, GAD_BAD_CHUNK_TABLE, "description",
                         "a kind of chunks has other steps than there are");
    ret->is_stream = kind->is_stream;
    ret->pipeline.n_steps = kind->n_steps;
    for (unsigned i = 0; i < kind->n_steps && r == 0; i++)
        r = read_step(&steps[kind->first_step + i], kind->first_step + i, &ret->pipeline.steps[i],
                      error);
    return r;
}

int scan_description_read(const void *bytes, size_t n_bytes, struct scan_description *ret,
                          struct gad_error *error)
{
    const struct scan_head *head = bytes;
    if (n_bytes < sizeof(*head))
        return error_set(error, GAD_BAD_CHUNK_TABLE, "description",
                         "the description of a scan has %zu bytes", n_bytes);
    int r = scan_head_check(head, n_bytes, error);
    if (r)
        return r;
    const struct scan_file *files = (const struct scan_file *)(head + 1);
    const struct scan_kind *kinds = (const struct scan_kind *)(files + head->n_files);
    const struct scan_step *steps = (const struct scan_step *)(kinds + head->n_kinds);
    struct scan_description read = {.n_chunks = head->n_chunks,
                                    .chunk_bytes = head->chunk_bytes,
                                    .n_files = head->n_files,
                                    .n_kinds = head->n_kinds,
                                    .files = files,
                                    .kinds = calloc(head->n_kinds, sizeof(*read.kinds)),
                                    .entries = (const struct scan_entry *)(steps + head->n_steps)};
    if (!read.kinds)
        return error_from_errno(error, ENOMEM, "description", "kinds of chunks");
    for (uint32_t i = 0; i < head->n_kinds && r == 0; i++)
        r = read_kind(head, &kinds[i], steps, &read.kinds[i], error);
    if (r)
        scan_description_deinit(&read);
    else
        *ret = read;
    return r;
}

void scan_description_deinit(struct scan_description *description)
{
    free(steal_ptr(description->kinds));
}

/* Making --------------------------------------------------------------------------------------- */

static void write_step(const struct codec_step *step, struct scan_step *ret)
{
    *ret = (struct scan_step){.n_values = step->n_values,
                              .is_optional = step->is_optional,
                              .scale = step->scale,
                              .offset = step->offset};
    snprintf(ret->codec, sizeof(ret->codec), "%s", step->codec->name);
    snprintf(ret->dtype, sizeof(ret->dtype), "%s", dtype_typestr(step->dtype, false));
    snprintf(ret->stored, sizeof(ret->stored), "%s", dtype_typestr(step->stored, false));
    memcpy(ret->values, step->values, step->n_values * sizeof(*step->values));
}

static void write_all(const struct scan_description *description, const struct scan_head *head,
                      void *to)
{
    struct scan_file *files = (struct scan_file *)((struct scan_head *)to + 1);
    struct scan_kind *kinds = (struct scan_kind *)(files + head->n_files);
    struct scan_step *steps = (struct scan_step *)(kinds + head->n_kinds);
    uint32_t n_steps = 0;
    *(struct scan_head *)to = *head;
    memcpy(files, description->files, head->n_files * sizeof(*files));
    for (uint32_t i = 0; i < head->n_kinds; i++) {
        const struct codec_packing *packing = &description->kinds[i];
        kinds[i] = (struct scan_kind){.first_step = n_steps,
                                      .n_steps = packing->pipeline.n_steps,
                                      .is_stream = packing->is_stream};
        for (unsigned k = 0; k < packing->pipeline.n_steps; k++)
            write_step(&packing->pipeline.steps[k], &steps[n_steps++]);
    }
    memcpy(steps + n_steps, description->entries,
           description->n_chunks * sizeof(*description->entries));
}

static int fill(int fd, const struct scan_description *description, const struct scan_head *head,
                uint64_t n_bytes)
{
    if (ftruncate(fd, (off_t)n_bytes) < 0)
        return -errno;
    void *to = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (to == MAP_FAILED)
        return -errno;
    write_all(description, head, to);
    munmap(to, n_bytes);
    return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0
               ? -errno
               : 0;
}

int scan_description_make(const struct scan_description *description, int *ret_fd,
                          struct gad_error *error)
{
    struct scan_head head = {.magic = SCAN_MAGIC,
                             .n_chunks = description->n_chunks,
                             .chunk_bytes = description->chunk_bytes,
                             .n_files = description->n_files,
                             .n_kinds = description->n_kinds};
    for (uint32_t i = 0; i < min_u64(head.n_kinds, SCAN_MAX_KINDS); i++)
        head.n_steps += description->kinds[i].pipeline.n_steps;
    uint64_t n_bytes = head.n_chunks <= SCAN_MAX_CHUNKS ? scan_description_bytes(&head) : 0;
    int r = scan_head_check(&head, n_bytes, error);
    if (r)
        return r;
    _cleanup_fd_ int fd = memfd_create("gpuarrayd-scan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    r = fd < 0 ? -errno : fill(fd, description, &head, n_bytes);
    if (r < 0)
        return error_from_errno(error, -r, "description", "memfd");
    *ret_fd = steal_fd(&fd);
    return 0;
}

/* Chunks --------------------------------------------------------------------------------------- */

int scan_tools_init(struct scan_tools *tools)
{
    *tools = (struct scan_tools){.scratch = codec_scratch_new()};
    return tools->scratch ? 0 : -ENOMEM;
}

void scan_tools_deinit(struct scan_tools *tools)
{
    tools->scratch = codec_scratch_free(tools->scratch);
    scan_stream_deinit(&tools->stream);
    free(steal_ptr(tools->stored));
}

static int reserve(struct scan_tools *tools, size_t n_bytes)
{
    if (n_bytes <= tools->room)
        return 0;
    free(steal_ptr(tools->stored));
    tools->room = 0;
    tools->stored = aligned_alloc(PAGE_BYTES, n_bytes);
    if (!tools->stored)
        return -ENOMEM;
    tools->room = n_bytes;
    return 0;
}

static int read_stored(int fd, const struct scan_entry *entry, struct scan_tools *tools,
                       const char **ret)
{
    uint64_t first = entry->offset_bytes & ~(uint64_t)(PAGE_BYTES - 1);
    size_t before = (size_t)(entry->offset_bytes - first), n_needed = before + entry->size_bytes;
    size_t n_bytes = round_up_u64(n_needed, PAGE_BYTES);
    if (entry->size_bytes > SCAN_MAX_STORED_BYTES)
        return CODEC_FAULT_LONG;
    if (entry->offset_bytes > (uint64_t)INT64_MAX - 2 * SCAN_MAX_STORED_BYTES)
        return -ENODATA;
    int r = reserve(tools, max_u64(n_bytes, PAGE_BYTES));
    if (r == 0)
        r = scan_read_pages(fd, tools->stored, n_bytes, first, n_needed);
    *ret = (const char *)tools->stored + before;
    return r;
}

bool scan_goes_on(const struct scan_description *description, uint64_t index)
{
    const struct scan_entry *entry = &description->entries[index];
    if (entry->kind >= description->n_kinds || !description->kinds[entry->kind].is_stream)
        return false;
    return (index > 0 && scan_stream_is_same(entry, entry - 1)) ||
           (index + 1 < description->n_chunks && scan_stream_is_same(entry, entry + 1));
}

static int decode_packed(const struct scan_description *description, int file_fd,
                         const struct scan_entry *entry, struct scan_tools *tools, void *ret)
{
    const char *stored;
    unsigned step;
    int r = read_stored(file_fd, entry, tools, &stored);
    return r ? r
             : codec_decode(&description->kinds[entry->kind].pipeline, entry->skipped,
                            tools->scratch, stored, entry->size_bytes, ret, entry->n_bytes, &step);
}

static int decode_part(const struct scan_description *description, int file_fd, uint64_t index,
                       struct scan_stream *stream, void *ret)
{
    const struct scan_entry *entry = &description->entries[index];
    if (!stream)
        return -EINVAL;
    if (index == 0 || !scan_stream_is_same(entry, entry - 1))
        scan_stream_begin(stream, index);
    bool is_last = index + 1 == description->n_chunks || !scan_stream_is_same(entry, entry + 1);
    return scan_stream_step(stream, index, file_fd, entry, is_last, ret);
}

enum scan_status scan_decode(const struct scan_description *description, const int *files,
                             uint64_t index, struct scan_tools *tools, struct scan_stream *stream,
                             void *ret_elements, int *ret_fault)
{
    const struct scan_entry entry = description->entries[index];
    *ret_fault = 0;
    if (entry.offset_bytes == SCAN_ABSENT)
        return SCAN_IS_ABSENT;
    if (entry.file >= description->n_files || entry.kind >= description->n_kinds ||
        entry.n_bytes > description->chunk_bytes)
        *ret_fault = CODEC_FAULT_VALUES;
    else if (description->kinds[entry.kind].is_stream)
        *ret_fault =
            decode_part(description, files[entry.file], index,
                        scan_goes_on(description, index) ? stream : &tools->stream, ret_elements);
    else
        *ret_fault = decode_packed(description, files[entry.file], &entry, tools, ret_elements);
    return *ret_fault == 0 ? SCAN_THERE : SCAN_FAILED;
}
