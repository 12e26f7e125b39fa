/* What a file was before it is changed in several places, kept behind its end while it is. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct undo_piece {
    uint64_t offset_bytes, n_bytes;
};

/* Notes what the pieces hold, in the file itself from `end` on, which is behind all that it will
 * hold. Whoever has changed them cuts the file at `end`; until then hdf5_undo() brings back what
 * was there when the file had n_old_bytes. A negative errno: nothing is noted. */
int hdf5_undo_note(int fd, const struct undo_piece *pieces, size_t n_pieces, uint64_t n_old_bytes,
                   uint64_t end);
/* Undoes a change that a killed process of ours has left in the middle, in the file of `st`, if
 * there is one and this process can: it may write to the file, and nobody has it open. */
void hdf5_undo(const char *path, const struct stat *st);
