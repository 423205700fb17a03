#pragma once

// The names under which files are written before they are whole.

#include <functional>
#include <string>
#include <string_view>

#include "holdfast/base/file_system.h"

namespace holdfast::format {

// `path` + ".tmp-" + 16 random hexadecimal digits: two writers of one path, on one host or two, do not meet.
std::string temporary_path(const std::string& path);

// Whether `name` could have come from temporary_path.
bool is_temporary_name(std::string_view name);

// Gives `path` the content that `fill` writes, whole or not at all, and makes it durable: a temporary file, fsync,
// rename, fsync of the folder. After an exception the temporary file is removed, if that is possible, and what stood at
// `path` stands there; only when the last act fails does the whole new file stand there already.
void write_whole(FileSystem& files, const std::string& path, const std::function<void(File&)>& fill);

}  // namespace holdfast::format
