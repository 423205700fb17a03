#pragma once

// The names under which files are written before they are whole: NAME.tmp-XXXXXXXXXXXXXXXX, with 16 lower-case
// hexadecimal digits. Whoever owns a folder removes at its start what writers that died left there; files of any other
// name are not ours and stay.

#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/file_system.h"

namespace holdfast {

// `path` + ".tmp-" + 16 random digits: two writers of one path, on one host or two, do not meet.
std::string temporary_path(const std::string& path);

// Whether `name`, of a file and without its folder, could have come from temporary_path.
bool is_temporary_name(std::string_view name);

// Removes from `folder` all files that have such a name, and no others. Returns the names removed, sorted. Call it only
// while nobody writes there: a file that is being written has such a name too. Throws what the file system throws.
std::vector<std::string> remove_temporary_files(FileSystem& files, const std::string& folder);

}  // namespace holdfast
