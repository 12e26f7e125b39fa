/* The checksum CRC-32C (Castagnoli), as Zarr has it behind chunks and indices of shards. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *bytes, size_t n_bytes);
