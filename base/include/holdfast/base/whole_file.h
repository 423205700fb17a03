#pragma once

// Atomic writes of a file in one call, and reading texts back.
//
//   write_whole_file(posix_file_system(), "run/run.json", std::as_bytes(std::span(json)));
//   const std::string json = read_text_file(posix_file_system(), "run/run.json");

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "holdfast/base/file_system.h"

namespace holdfast {

// Replaces `path` in one step with what `fill` writes. The steps are: a temporary file in the same
// folder (temporary_files.h), fsync, rename, fsync of the folder. The file is durable on return; the
// call blocks until the disk has it.
//
// After an exception, `path` still holds what it held before, and the temporary file is removed, if that is possible.
// Only when the last step fails, the fsync of the folder, does `path` already hold the whole new file. A writer that
// dies leaves its temporary file to remove_temporary_files(). Where several write one path, the last to finish wins.
void write_whole_file(FileSystem& files, const std::string& path, const std::function<void(File&)>& fill);
void write_whole_file(FileSystem& files, const std::string& path, std::span<const std::byte> bytes);

// The content of a text file. Throws Error{invalid_file} when it is larger than 64 MiB, and what the
// file system throws.
std::string read_text_file(FileSystem& files, const std::string& path);

}  // namespace holdfast
