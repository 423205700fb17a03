#pragma once

// Savepoints whose every bit follows from their step, so that another process can tell a whole one from a mix.

#include <cstdint>
#include <string>

#include "holdfast/base/file_system.h"

namespace holdfast {

// Of 4 KB to 2 MB, by the step.
void write_known_savepoint(FileSystem& files, const std::string& path, std::int64_t step);

// Returns the step. Throws Error{invalid_file} for anything but what write_known_savepoint() wrote.
std::int64_t read_known_savepoint(FileSystem& files, const std::string& path);

}  // namespace holdfast
