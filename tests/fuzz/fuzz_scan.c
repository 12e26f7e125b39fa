/* Any bytes as the description of a shared scan, and as what its readers say.
 *
 * The first byte says which. A description that is accepted has known codecs and entries inside its
 * bytes, and its first chunks are decoded from a file of these very bytes. Packets go to a flow in
 * turn with claims; checked: nothing is given away that is still written, nor too far ahead.
 */
#include "client/scan/scan_description.h"
#include "client/scan/scan_flow.h"
#include "proto/util.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_DECODED_BYTES 65536u

static void decode(const struct scan_description *description, const uint8_t *data, size_t n_bytes)
{
    struct scan_tools tools;
    struct scan_stream stream = {.n_taken = 0};
    int fault;
    _cleanup_fd_ int fd = memfd_create("fuzz", MFD_CLOEXEC);
    _cleanup_free_ void *elements = malloc(description->chunk_bytes);
    assert(fd >= 0 && elements && pwrite(fd, data, n_bytes, 0) == (ssize_t)n_bytes);
    _cleanup_free_ int *files = malloc(description->n_files * sizeof(*files));
    assert(files && scan_tools_init(&tools) == 0);
    for (uint32_t i = 0; i < description->n_files; i++)
        files[i] = fd;
    for (uint64_t i = 0; i < description->n_chunks && i < 4; i++) {
        enum scan_status status =
            scan_decode(description, files, i, &tools, &stream, elements, &fault);
        assert(status == SCAN_FAILED ? fault != 0 : fault == 0);
    }
    scan_stream_deinit(&stream);
    scan_tools_deinit(&tools);
}

static void read_description(const uint8_t *data, size_t n_bytes)
{
    struct scan_description description;
    struct gad_error error = {0};
    _cleanup_free_ void *copy = malloc(n_bytes + 1);
    assert(copy);
    memcpy(copy, data, n_bytes);
    int r = scan_description_read(copy, n_bytes, &description, &error);
    if (r) {
        assert(r == GAD_BAD_CHUNK_TABLE || r == GAD_LIMIT_EXCEEDED || r == GAD_BAD_ARGUMENT);
        return;
    }
    assert((const char *)(description.entries + description.n_chunks) == (char *)copy + n_bytes);
    for (uint32_t i = 0; i < description.n_kinds; i++)
        for (unsigned k = 0; k < description.kinds[i].pipeline.n_steps; k++)
            assert(description.kinds[i].pipeline.steps[k].codec->decode);
    if (description.chunk_bytes <= MAX_DECODED_BYTES)
        decode(&description, data, n_bytes);
    scan_description_deinit(&description);
}

static void hear_packets(const uint8_t *data, size_t n_bytes)
{
    static struct scan_flow flow;
    uint64_t number = 0, until_ns, now_ns = 1;
    scan_flow_init(&flow, SCAN_MIN_SLOTS, SCAN_MIN_SLOTS);
    for (unsigned i = 0; i < 3; i++)
        assert(scan_flow_join(&flow, i, now_ns) == 0);
    for (; n_bytes >= 1 + sizeof(struct scan_ack); data += 17, n_bytes -= 17) {
        struct scan_ack ack;
        memcpy(&ack, data + 1, sizeof(ack));
        uint64_t before = flow.next;
        int r = scan_flow_ack(&flow, data[0] % 3, &ack, now_ns);
        assert(r == 0 || r == -EPROTO);
        assert(flow.readers[data[0] % 3].done <= before);
        now_ns += (uint64_t)data[0] * 1000000;
        if (scan_flow_claim(&flow, now_ns, &number, &until_ns)) {
            assert(number < flow.published + SCAN_MIN_SLOTS);
            if (data[0] & 0x80)
                scan_flow_publish(&flow, number);
        } else if (flow.published < flow.next) {
            scan_flow_publish(&flow, flow.published);
        }
        assert(flow.published <= flow.next);
        (void)!scan_flow_take_wish(&flow, data[0] % 3);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes == 0)
        return 0;
    if (data[0] & 1)
        hear_packets(data + 1, n_bytes - 1);
    else
        read_description(data + 1, n_bytes - 1);
    return 0;
}
