#pragma once

// Files that are written whole or not at all, in one call; and texts, read back.

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "holdfast/base/file_system.h"

namespace holdfast {

// Replaces `path` in one step by what `fill` writes: a temporary file beside it (temporary_files.h), fsync, rename,
// fsync of the folder. Durable on return. After an exception the temporary file is removed, if that is possible, and
// what stood at `path` stands there; only when the last act fails, the fsync of the folder, does the whole new file
// stand there already. A writer that dies leaves its temporary file to remove_temporary_files(). Of several writers of
// a path the last to finish wins.
void write_whole_file(FileSystem& files, const std::string& path, const std::function<void(File&)>& fill);
void write_whole_file(FileSystem& files, const std::string& path, std::span<const std::byte> bytes);

// Throws Error{invalid_file} when it is larger than 64 MiB.
std::string read_text_file(FileSystem& files, const std::string& path);

}  // namespace holdfast
