#pragma once

// Holdfast reads a file through its index, and other programs through HDF5. Both must find the same.

#include <string>

#include "holdfast/base/file_system.h"

namespace holdfast::format::testing {

// Compares everything that both show of an array file: groups, names, types, shapes, elements, digests, metadata.
void expect_views_equal(const std::string& path, FileSystem& files = posix_file_system());

}  // namespace holdfast::format::testing
