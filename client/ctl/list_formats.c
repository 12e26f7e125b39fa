/* gpuarrayctl formats: which files can be read and written, and what may pack them.
 *
 * Asks no daemon: files are the library's. A codec that is not here names what would bring it; HDF5
 * uses plugins of its own (HDF5_PLUGIN_PATH), which are not listed.
 */
#include "client/ctl/ctl.h"

#include <string.h>

struct formats_options {
    bool json;
};

enum { OPTION_JSON = 0x100 };

static const struct argp_option formats_argp_options[] = {
    {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct formats_options *o = state->input;
    switch (key) {
    case OPTION_JSON: o->json = true; return 0;
    case ARGP_KEY_ARG: return ctl_usage_error(state, "'%s' is too much", arg);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp formats_argp = {
    formats_argp_options,
    parse_option,
    "",
    "Lists the formats of files, how an array in one is named, and the codecs that pack chunks: "
    "with the number of HDF5's filter, the name in Zarr, and for those that are not here what "
    "would bring them. What is here is read and written (--compress, --shuffle, --fletcher32) "
    "where "
    "it has a number or a name, Zarr's transpose likewise (--compress transpose,zstd). Shards "
    "may be in shards (--shards, several times).\v"
    "Examples:\n"
    "  gpuarrayctl formats\n"
    "  gpuarrayctl formats --json" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

static struct json_object *text_or_null(const char *text)
{
    return text ? json_object_new_string(text) : NULL;
}

static void put_json(void)
{
    struct json_object *all = json_object_new_object(), *formats = json_object_new_array();
    struct json_object *codecs = json_object_new_array();
    struct gad_known_format format;
    struct gad_known_codec codec;
    for (size_t i = 0; gad_format_at(i, &format); i++) {
        struct json_object *one = json_object_new_object();
        json_object_object_add(one, "name", json_object_new_string(format.name));
        json_object_object_add(one, "extensions", json_object_new_string(format.extensions));
        json_object_object_add(one, "written", json_object_new_string(format.written));
        json_object_object_add(one, "chunks", json_object_new_boolean(format.has_chunks));
        json_object_object_add(one, "shards", json_object_new_boolean(format.has_shards));
        json_object_array_add(formats, one);
    }
    for (size_t i = 0; gad_codec_at(i, &codec); i++) {
        struct json_object *one = json_object_new_object();
        json_object_object_add(one, "name", json_object_new_string(codec.name));
        json_object_object_add(one, "hdf5",
                               codec.hdf5_id ? json_object_new_int64(codec.hdf5_id) : NULL);
        json_object_object_add(one, "zarr", text_or_null(codec.zarr_name));
        json_object_object_add(one, "reads", json_object_new_boolean(codec.can_read));
        json_object_object_add(one, "writes", json_object_new_boolean(codec.can_write));
        json_object_object_add(one, "package", text_or_null(codec.package));
        json_object_array_add(codecs, one);
    }
    json_object_object_add(all, "formats", formats);
    json_object_object_add(all, "codecs", codecs);
    ctl_put_json(all);
}

static void put_table(void)
{
    struct gad_known_format format;
    struct gad_known_codec codec;
    printf("%-8s %-30s %-7s %s\n", "FORMAT", "AS", "CHUNKS", "EXTENSIONS");
    for (size_t i = 0; gad_format_at(i, &format); i++)
        printf("%-8s %-30s %-7s %s\n", format.name, format.written,
               format.has_shards   ? "shards"
               : format.has_chunks ? "yes"
                                   : "-",
               format.extensions);
    printf("\n%-16s %-7s %-16s %-6s %s\n", "CODEC", "HDF5", "ZARR", "HERE", "PACKAGE");
    for (size_t i = 0; gad_codec_at(i, &codec); i++) {
        char id[16] = "-";
        if (codec.hdf5_id)
            snprintf(id, sizeof(id), "%u", codec.hdf5_id);
        printf("%-16s %-7s %-16s %-6s %s\n", codec.name, id,
               codec.zarr_name ? codec.zarr_name : "-",
               codec.can_write  ? "yes"
               : codec.can_read ? "reads"
                                : "no",
               codec.package ? codec.package : "-");
    }
}

int verb_formats(int argc, char **argv)
{
    struct formats_options o = {.json = false};
    if (ctl_parse(&formats_argp, argc, argv, &o))
        return EXIT_USAGE;
    if (o.json)
        put_json();
    else
        put_table();
    return EXIT_OK;
}
