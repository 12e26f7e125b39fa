/* Members: opening one.
 *
 * A member is opened by its format as if it had been named alone, but for two things: its brackets
 * have been read already, and nobody looks for a file with such a name again.
 *
 * Called by many_look.c and opened.c.
 */
#include "client/formats/many/member.h"
#include "client/formats/format_impl.h"
#include "proto/util.h"

int member_open(const struct member *member, struct gad_client *client,
                struct gad_array **ret_array, struct gad_error *error)
{
    struct spec spec = *member->spec;
    spec.path = member->path;
    spec.format = format_of_file(spec.format, spec.path);
    spec.selection_at = member->selection_at;
    spec.format = format_of_file(spec.format, spec.path);
    return spec.format->open(client, &spec, member->name, false, ret_array, error);
}
