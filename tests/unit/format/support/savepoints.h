#pragma once

// Small savepoints for tests of what happens to savepoints. Each step has content of its own.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/file_system.h"
#include "support/disks/memory_file_system.h"

namespace holdfast::format::testing {

// Writes a savepoint of `step`, with the metadata {"step": step, "metrics": {"loss": loss}}. Different steps have
// different arrays.
void write_savepoint(FileSystem& files, const std::string& path, std::int64_t step, double loss = 0);

// Reads a savepoint and returns its step. Throws Error for a damaged file. Fails the test unless every bit is what
// write_savepoint() wrote for that step.
std::int64_t read_savepoint(FileSystem& files, const std::string& path);

// Flips one bit in the middle of a file.
void damage(FileContents& contents, const std::string& path);

}  // namespace holdfast::format::testing
