#pragma once

// `holdfast convert IN OUT`: turns one kind of file into another.

#include <optional>
#include <string>

#include "console.h"
#include "holdfast/base/file_system.h"
#include "holdfast/format/array_file.h"

namespace holdfast::cli {

struct Subcommands;

struct ConvertOptions {
  std::string input;
  std::string output;
  std::string to{};    // the name of a format::ConvertTarget; empty: chosen by the extension of `output`
  std::string like{};  // a savepoint of the same model
  bool replaces_output = false;
  std::optional<format::Compression> compression{};  // for Holdfast files only
  std::optional<int> zstd_level{};                   // implies Compression::zstd
};

// Prints to `console.out` what was written and what was left out. Returns the exit code. Throws what
// format::convert_file throws, and Error{invalid_argument} when a compression is given for a file that is not
// Holdfast's.
int convert(FileSystem& files, const ConvertOptions& options, Console& console);

// Adds the subcommand with its options.
void add_convert(Subcommands& commands);

}  // namespace holdfast::cli
