#pragma once

// `holdfast convert IN OUT`: from one kind of file to another.

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
  std::string to{};    // a name of format::ConvertTarget; empty: by the end of `output`
  std::string like{};  // a savepoint of the same model
  bool replaces_output = false;
  std::optional<format::Compression> compression{};  // of a Holdfast file alone
  std::optional<int> zstd_level{};                   // of Compression::zstd, and asks for it
};

// Says on `console.out` what was written and what was left out. Returns the exit code; throws what format::convert_file
// throws, and Error{invalid_argument} for a compression of other files than Holdfast's.
int convert(FileSystem& files, const ConvertOptions& options, Console& console);

// Adds the subcommand with its options.
void add_convert(Subcommands& commands);

}  // namespace holdfast::cli
