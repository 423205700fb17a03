#pragma once

// `holdfast verify FILE|FOLDER`: are the files whole, to the last bit of every array?

#include <string>

#include "console.h"
#include "holdfast/base/file_system.h"

namespace holdfast::cli {

struct Subcommands;

// Checks the file at `path`, or each *.h5 file in the folder at `path`: every byte, by digest. Writes one line for each
// file: to `console.out` when it is whole, else to `console.problems`; and there one for each file of the folder that a
// writer left behind or that was set aside, which changes nothing. Returns the exit code: kDone only if all files are
// whole, kNotDone if one could not be checked or is none of Holdfast's, else kDamaged. Throws Error for a folder that
// cannot be listed or has no such file.
int verify(FileSystem& files, const std::string& path, Console& console);

// Adds the subcommand with its options.
void add_verify(Subcommands& commands);

}  // namespace holdfast::cli
