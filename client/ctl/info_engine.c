/* gpuarrayctl info: the rates of an engine, and what the memory of a device is made of, as a list
 * that adds up.
 *
 *     memory         85899345920 bytes  85.9 GB of the device, as its worker got ready
 *       free         80530636800 bytes  80.5 GB
 *       reserved       629145600 bytes  629 MB of the driver's own
 *       others        2147483648 bytes  2.15 GB of other processes: pid 77 (python3) 2.1 GB
 *       process       2592079872 bytes  2.59 GB of the daemon's worker, as the driver counts it
 *         context      ...
 *
 * Every level is the sum of the one below it. Called by info.c.
 */
#include "client/ctl/info_engine.h"

#include <inttypes.h>
#include <string.h>

static uint64_t number(struct json_object *map, const char *key)
{
    return json_object_get_uint64(json_object_object_get(map, key));
}

static const char *text(struct json_object *map, const char *key)
{
    const char *found = json_object_get_string(json_object_object_get(map, key));
    return found ? found : "";
}

/* The rest of the line is the caller's. */
static void begin_line(struct json_object *map, int depth, const char *name, const char *key)
{
    char size[32];
    uint64_t n_bytes = number(map, key);
    printf("%*s%-*s %15" PRIu64 " bytes  %s", depth * 2, "", 20 - depth * 2, name, n_bytes,
           ctl_format_bytes((double)n_bytes, size));
}

static void print_line(struct json_object *map, int depth, const char *name, const char *key,
                       const char *what)
{
    begin_line(map, depth, name, key);
    printf("%s%s\n", what[0] ? ", " : "", what);
}

static void print_holders(struct json_object *holders)
{
    size_t n =
        json_object_is_type(holders, json_type_array) ? json_object_array_length(holders) : 0;
    for (size_t i = 0; i < n; i++) {
        struct json_object *holder = json_object_array_get_idx(holders, i);
        char size[32];
        uint64_t n_bytes = number(holder, "bytes");
        printf("%s pid %" PRIu64 "%s%s%s", i == 0 ? ":" : ",", number(holder, "pid"),
               text(holder, "name")[0] ? " (" : "", text(holder, "name"),
               text(holder, "name")[0] ? ")" : "");
        if (n_bytes > 0)
            printf(" %s", ctl_format_bytes((double)n_bytes, size));
    }
    putchar('\n');
}

static const char *source_text(const char *source)
{
    if (strcmp(source, "driver") == 0)
        return "the daemon's worker, as the driver counts it";
    if (strcmp(source, "difference") == 0)
        return "the daemon's worker, by what the use of the device grew as it started";
    return "the daemon's worker, as far as its parts are known";
}

/* Without NVML the parts of the worker that are not known cannot be told from others'. */
static const char *others_text(const char *source)
{
    return strcmp(source, "sum") == 0 ? ", other processes, and what of the worker is not known"
                                      : ", other processes";
}

void info_print_memory(struct json_object *memory, int depth)
{
    print_line(memory, depth, "memory", "total", "the device, as its worker got ready");
    print_line(memory, depth + 1, "free", "free", "");
    print_line(memory, depth + 1, "reserved", "reserved", "the driver's own");
    begin_line(memory, depth + 1, "others", "used_by_others");
    fputs(others_text(text(memory, "process_source")), stdout);
    print_holders(json_object_object_get(memory, "holders"));
    print_line(memory, depth + 1, "process", "process",
               source_text(text(memory, "process_source")));
    print_line(memory, depth + 2, "context", "context", "");
    print_line(memory, depth + 2, "modules", "modules", "code and its working memory");
    print_line(memory, depth + 2, "pool", "pool", "what jobs run in");
    print_line(memory, depth + 2, "other", "other", "streams, events, rounding");
    print_line(memory, depth, "pinned", "pinned", "locked memory of this machine");
}

static bool has_rate(struct json_object *rates)
{
    json_object_object_foreach(rates, kind, value)
    {
        (void)kind;
        if (json_object_get_double(value) > 0)
            return true;
    }
    return false;
}

void info_print_rates(struct json_object *rates, int depth)
{
    static const char *const kinds[] = {"memory",    "file",        "disk",
                                        "to_device", "from_device", "device"};
    static const char *const products[] = {"product_float32", "product_float64", "product_integer",
                                           "product_tf32"};
    char text_of[32];
    if (!has_rate(rates))
        return;
    printf("%*srates\n", depth * 2, "");
    depth++;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        double rate = json_object_get_double(json_object_object_get(rates, kinds[i]));
        if (rate > 0)
            printf("%*s%-*s %s/s\n", depth * 2, "", 22 - depth * 2, kinds[i],
                   ctl_format_bytes(rate, text_of));
    }
    double work = json_object_get_double(json_object_object_get(rates, "work"));
    double floor_s = json_object_get_double(json_object_object_get(rates, "job_seconds"));
    if (work > 0)
        printf("%*s%-*s %.3g instructions/s\n", depth * 2, "", 22 - depth * 2, "work", work);
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++) {
        double rate = json_object_get_double(json_object_object_get(rates, products[i]));
        if (rate > 0)
            printf("%*s%-*s %.3g operations/s\n", depth * 2, "", 22 - depth * 2, products[i], rate);
    }
    if (floor_s > 0)
        printf("%*s%-*s %.3g us\n", depth * 2, "", 22 - depth * 2, "least", floor_s * 1e6);
}

/* Chunks that readers took for each that was decoded: how much was saved. */
void info_print_scan(struct json_object *scan, int depth)
{
    uint64_t n_decoded = number(scan, "decoded"), n_failed = number(scan, "failed");
    uint64_t n_files = number(scan, "files");
    printf("%*s%-*s %" PRIu64 ": inode %" PRIu64 " of device %" PRIu64 ":%" PRIu64, depth * 2, "",
           22 - depth * 2, "scan", number(scan, "scan"), number(scan, "inode"),
           number(scan, "device") >> 32, number(scan, "device") & UINT32_MAX);
    if (n_files > 1)
        printf(" and %" PRIu64 " other files", n_files - 1);
    printf(", %" PRIu64 " readers, %" PRIu64 " of %" PRIu64 " chunks decoded",
           number(scan, "readers"), n_decoded, number(scan, "chunks"));
    if (n_decoded > 0)
        printf(", each for %.2f", (double)number(scan, "taken") / (double)n_decoded);
    if (n_failed > 0)
        printf(", %" PRIu64 " in vain", n_failed);
    printf("\n");
}
