/* SIGHUP: the file is read again and applied, or refused whole. */
#pragma once

struct broker;
struct reload;

/* Begins; the loop goes on meanwhile. While one is under way another is begun after it. */
void reload_begin(struct broker *broker);
struct reload *reload_free(struct reload *reload); /* NULL */
