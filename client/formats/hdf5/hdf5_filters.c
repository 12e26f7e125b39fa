/* HDF5's filters.
 *
 * A dataset's filters are steps of a pipeline in the order in which HDF5 applies them to a chunk
 * that it writes. Where all of them are codecs of ours, chunks are read as they are stored and
 * decoded outside HDF5's lock. Otherwise (n-bit, filters of a plugin) HDF5 reads the
 * elements. What neither has is found out when the dataset is opened, not at the first block.
 *
 * Called by hdf5.c.
 */
#include "client/formats/hdf5/hdf5_filters.h"
#include "client/formats/hdf5/hdf5_file.h"

bool hdf5_filters_pipeline(hid_t create_plist, struct codec_pipeline *ret_pipeline)
{
    struct codec_pipeline pipeline = {.n_steps = 0};
    int n_filters = H5Pget_nfilters(create_plist);
    if (n_filters < 0 || n_filters > CODEC_MAX_STEPS)
        return false;
    for (int i = 0; i < n_filters; i++) {
        struct codec_step *step = &pipeline.steps[pipeline.n_steps++];
        unsigned flags, values[CODEC_MAX_VALUES];
        size_t n_values = CODEC_MAX_VALUES;
        H5Z_filter_t filter =
            H5Pget_filter2(create_plist, (unsigned)i, &flags, &n_values, values, 0, NULL, NULL);
        if (filter <= 0 || n_values > CODEC_MAX_VALUES)
            return false;
        step->codec = codec_of_hdf5((uint32_t)filter);
        if (!step->codec || !step->codec->decode)
            return false;
        step->is_optional = flags & H5Z_FLAG_OPTIONAL;
        step->n_values = (unsigned)n_values;
        for (size_t k = 0; k < n_values; k++)
            step->values[k] = values[k];
    }
    *ret_pipeline = pipeline;
    return true;
}

static int missing_error(H5Z_filter_t filter, const char *said, const char *dataset,
                         const char *name, struct gad_error *error)
{
    const struct codec_elsewhere *known = codec_elsewhere((uint32_t)filter);
    const struct codec *ours = codec_of_hdf5((uint32_t)filter); /* its library was not there */
    const char *package = ours ? ours->package : known ? known->package : NULL;
    error_set(error, GAD_BAD_FORMAT, name,
              "'%.100s' is packed with filter %d (%.40s), which is not here%s%s", dataset,
              (int)filter,
              *said   ? said
              : ours  ? ours->name
              : known ? known->name
                      : "nobody knows it",
              package ? ": it comes with " : "", package ? package : "");
    error_expected(error, "a plugin for filter %d in HDF5_PLUGIN_PATH", (int)filter);
    error_found(error, "none");
    return GAD_BAD_FORMAT;
}

int hdf5_filters_check(hid_t create_plist, const char *dataset, const char *name,
                       struct gad_error *error)
{
    struct codec_pipeline pipeline;
    if (hdf5_filters_pipeline(create_plist, &pipeline))
        return 0;
    int n_filters = H5Pget_nfilters(create_plist);
    for (int i = 0; i < n_filters; i++) {
        unsigned flags, config;
        size_t n_values = 0;
        char said[64] = "";
        H5Z_filter_t filter = H5Pget_filter2(create_plist, (unsigned)i, &flags, &n_values, NULL,
                                             sizeof(said), said, &config);
        if (filter < 0 || H5Zfilter_avail(filter) <= 0)
            return missing_error(filter, said, dataset, name, error);
    }
    return 0;
}

unsigned hdf5_plugins_stop(void)
{
    unsigned plugins = 0;
    if (H5PLget_loading_state(&plugins) < 0)
        return 0;
    H5PLset_loading_state(plugins & ~(unsigned)H5PL_FILTER_PLUGIN);
    return plugins;
}

void hdf5_plugins_resume(unsigned plugins)
{
    H5PLset_loading_state(plugins);
}
