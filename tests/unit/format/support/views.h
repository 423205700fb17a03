#pragma once

// Holdfast reads a file by its index, everyone else through HDF5: both must see the same.

#include <string>

#include "holdfast/base/file_system.h"

namespace holdfast::format::testing {

// Compares everything that either shows of an array file: groups, names, types, shapes, elements, digests, metadata.
void expect_views_equal(const std::string& path, FileSystem& files = posix_file_system());

}  // namespace holdfast::format::testing
