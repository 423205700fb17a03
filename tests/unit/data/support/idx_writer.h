#pragma once

// IDX files for tests: whole ones, and ones with any error that a test needs.

#include <cstdint>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace holdfast {

using Bytes = std::vector<std::uint8_t>;

// The bytes of an IDX file of unsigned bytes.
Bytes idx_bytes(const std::vector<std::uint32_t>& extents, const Bytes& elements);

void write_plain(const std::string& path, const Bytes& content);
void write_gzip(const std::string& path, const Bytes& content);
Bytes read_plain(const std::string& path);

}  // namespace holdfast
