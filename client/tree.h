/* Removing folders with all that is in them. */
#pragma once

/* Removes `name` in the folder, which may be O_PATH: a file, a link itself, or a folder and what is
 * in it, as far as that is possible. Links are not followed. 0 or -errno of what stays. */
int tree_remove(int dir_fd, const char *name) __attribute__((warn_unused_result));
