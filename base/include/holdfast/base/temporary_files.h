#pragma once

// The names of files during an atomic write: NAME.tmp-XXXXXXXXXXXXXXXX, with 16 lower-case hexadecimal
// digits. The owner of a folder removes, when it starts, what writers that died left there. Files of
// any other name are not ours and stay.

#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/file_system.h"

namespace holdfast {

// `path` + ".tmp-" + 16 random digits: two writers of one path do not meet, on one host or on two.
std::string temporary_path(const std::string& path);

// Whether temporary_path() could have made `name`, a file name without its folder.
bool is_temporary_name(std::string_view name);

// Removes all files with such a name from `folder`, and no others. Returns the names that were removed,
// sorted. Call it only while nothing writes there: a file that is being written has such a name too.
// Throws what the file system throws; files before the failing one are removed then.
std::vector<std::string> remove_temporary_files(FileSystem& files, const std::string& folder);

}  // namespace holdfast
