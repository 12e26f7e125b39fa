/* Which file systems the daemon reads and writes by itself. */
#pragma once

#include <stdbool.h>

/* What becomes of regular files of a file system. */
enum file_system_class {
    FILE_SYSTEM_LOCAL,  /* the daemon reads and writes them */
    FILE_SYSTEM_PSEUDO, /* made up by the kernel: not data */
    FILE_SYSTEM_OTHER,  /* may block or fail in ways of its own: through a provider */
};

/* The class of the type that mountinfo names, such as "ext4"; NULL: other. */
enum file_system_class file_system_classify(const char *type);
/* The same of an open file, by its file system's number: false for all but FILE_SYSTEM_LOCAL. */
bool file_system_is_local(int fd);
