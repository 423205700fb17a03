#pragma once

// The names under which files are written before they are whole.

#include <string>
#include <string_view>

#include "holdfast/base/file_system.h"

namespace holdfast::format {

// `path` + ".tmp-" + 16 random hexadecimal digits: two writers of one path, on one host or two, do not meet.
std::string temporary_path(const std::string& path);

// Whether `name` could have come from temporary_path.
bool is_temporary_name(std::string_view name);

}  // namespace holdfast::format
