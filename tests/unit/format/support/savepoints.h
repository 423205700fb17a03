#pragma once

// Small savepoints for tests of what happens to savepoints: one for each step, told apart by their content.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/file_system.h"
#include "support/memory_file_system.h"

namespace holdfast::format::testing {

// Of `step`, with {"step": step, "metrics": {"loss": loss}} as metadata. Different steps have different arrays.
void write_savepoint(FileSystem& files, const std::string& path, std::int64_t step, double loss = 0);

// The step of a savepoint whose every bit is what write_savepoint() wrote; throws Error for a damaged file, and fails
// the test for a whole one that is a mix.
std::int64_t read_savepoint(FileSystem& files, const std::string& path);

// Flips one bit in the middle of a file.
void damage(FileContents& contents, const std::string& path);

}  // namespace holdfast::format::testing
