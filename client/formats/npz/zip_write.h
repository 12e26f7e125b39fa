/* The records of a zip archive as bytes. Pure. */
#pragma once

#include "client/formats/npz/zip_read.h"

/* Bytes that grow. An append that finds no memory makes all that follow do nothing. */
struct zip_bytes {
    uint8_t *bytes;
    size_t n_bytes, room;
    bool is_lost; /* memory was short */
};
void zip_bytes_deinit(struct zip_bytes *bytes);

#define ZIP_ALIGNMENT 4096 /* of a member's data: those of our own, and their copies */

/* What both headers of a member say. */
struct zip_record {
    const char *name;
    uint16_t version; /* that is needed to read it, but for long sizes */
    uint16_t flags, method, time, date;
    uint32_t crc;
    uint64_t packed_bytes, size_bytes, header_offset;
    const uint8_t *extra; /* other fields than sizes and alignment, of this header */
    size_t n_extra;
};
/* Of a member that is stored, whose name is UTF-8. The date is always the same, as numpy.savez()
 * has it, so that the same arrays make the same file. */
struct zip_record zip_record_stored(const char *name, uint32_t crc, uint64_t size_bytes,
                                    uint64_t header_offset);

/* Appends a local header. is_aligned: padded so that the data begin at a multiple of ZIP_ALIGNMENT;
 * the record's offset says where the header stands. */
void zip_append_local(struct zip_bytes *bytes, const struct zip_record *record, bool is_aligned);
/* Appends a record of the directory. `old`: that of a member that is copied, whose other fields and
 * comment stay; NULL: of a new one. */
void zip_append_central(struct zip_bytes *bytes, const struct zip_record *record,
                        const uint8_t *old);
/* Appends the end of an archive whose directory has n_bytes at offset_bytes. */
void zip_append_end(struct zip_bytes *bytes, uint64_t n_members, uint64_t n_bytes,
                    uint64_t offset_bytes, const uint8_t *comment, size_t n_comment);

/* Whether the fields have one that aligns the data. */
bool zip_extra_is_aligned(const uint8_t *extra, size_t n_bytes);
/* Copies n_bytes of extra fields without those of sizes and alignment; returns what is left. What
 * is no field is dropped. */
size_t zip_extra_keep(const uint8_t *extra, size_t n_bytes, uint8_t *ret_extra);
