#pragma once

// Savepoints whose bits all follow from the step, so that another process can distinguish a whole one from a mixture.

#include <cstdint>
#include <string>

#include "holdfast/base/file_system.h"

namespace holdfast {

// Writes a savepoint of 4 KB to 2 MB; the size depends on the step.
void write_known_savepoint(FileSystem& files, const std::string& path, std::int64_t step);

// Returns the step. Throws Error{invalid_file} for a file that write_known_savepoint() did not write.
std::int64_t read_known_savepoint(FileSystem& files, const std::string& path);

}  // namespace holdfast
