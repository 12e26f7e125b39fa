/* Values as people write them: sizes, times, numbers with a unit. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "4096", "32M", "1GiB"; K, M, G, T are powers of 1024. */
bool units_parse_size(const char *text, uint64_t *ret_bytes) GAD_MUST_CHECK;
/* "50%" of `whole`. */
bool units_parse_share(const char *text, uint64_t whole, uint64_t *ret) GAD_MUST_CHECK;
/* "60", "0.5", "60s", "500ms", "10min", "2h"; at most about 30 years. */
bool units_parse_seconds(const char *text, uint64_t *ret_ns) GAD_MUST_CHECK;
bool units_parse_number(const char *text, int base, uint64_t *ret) GAD_MUST_CHECK;

/* The shortest way to write it that reads back the same. */
void units_format_size(uint64_t n_bytes, char *text, size_t n_text_bytes);
void units_format_seconds(uint64_t ns, char *text, size_t n_text_bytes);

uint64_t units_memory_bytes(void); /* of this machine */
