/* Shared scans, as far as the daemon is asked for them. */
#pragma once

#include "client/scan/scan_reader.h"

struct gad_client;

/* Asks for a scan as described: the end of the pair of which the scan has the other. Any failure:
 * there is no scan. */
int client_ask_scan(struct gad_client *client, const struct scan_description *description,
                    int *ret_socket, struct gad_error *error) GAD_MUST_CHECK;
/* The same, and is greeted. The description stays the caller's, and is needed as long as the
 * reader. Any failure: there is no scan, and the caller decodes by itself. */
int client_join_scan(struct gad_client *client, const struct scan_description *description,
                     const struct scan_access *access, struct scan_reader **ret_reader,
                     struct gad_error *error) GAD_MUST_CHECK;
