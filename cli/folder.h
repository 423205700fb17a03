#pragma once

#include <string>

#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"

namespace holdfast::cli {

// FileSystem has no call that says what a path is, so the path is listed.
// False for a file, and for a path that does not exist.
inline bool is_folder(FileSystem& files, const std::string& path) {
  try {
    files.list(path);
    return true;
  } catch (const Error&) {
    return false;  // opening the path as a file reports what is wrong
  }
}

}  // namespace holdfast::cli
