#pragma once

// Small files that are whole or absent.

#include <span>
#include <string>

#include "holdfast/base/file_system.h"

namespace holdfast {

// Replaces `path` in one step: a temporary file beside it (path + ".tmp"), fsync, rename, fsync of the folder. Durable
// on return. After an Error the old content stands, and the temporary file is
// removed if that is possible. One writer of a path at a time.
void write_whole_file(FileSystem& files, const std::string& path, std::span<const std::byte> bytes);

// Throws Error{invalid_file} when it is larger than 64 MiB.
std::string read_text_file(FileSystem& files, const std::string& path);

}  // namespace holdfast
