/* Hidden names of what is being made: files beside their targets, datasets in the root group. They
 * tell who makes them, so that whatever a killed process has left can be told from what is still
 * being made. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define HIDDEN_TAG_SIZE 80 /* with its '\0'; letters, digits and '-' */

/* A new tag of this process. 0 or -errno. */
int hidden_tag(char ret_tag[HIDDEN_TAG_SIZE]) __attribute__((warn_unused_result));
/* Whether this is exactly a tag, of this user, and its process was one of this machine and has
 * ended, or that this process has given it up. */
bool hidden_is_left(const char *tag);

/* What has this tag, which is one of this process, could not be removed: the next output that finds
 * it may do so. Of those that were given up only the last ones are known. */
void hidden_give_up(const char *tag);

/* ".BASE.TAG", or with a BASE that would be too long ".gpuarrayd.TAG". NAME_MAX + 1 bytes. */
void hidden_file_name(const char *base, const char *tag, char *ret_name);
/* Removes files and folders with such names that this user's processes have left in the folder,
 * which may be O_PATH. It looks at the same folder twice a second at most. */
void hidden_sweep(int dir_fd);
