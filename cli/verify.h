#pragma once

// `holdfast verify FILE|FOLDER`: checks that files are whole, to the last bit of every array.

#include <string>

#include "console.h"
#include "holdfast/base/file_system.h"

namespace holdfast::cli {

struct Subcommands;

// Checks every byte of the file at `path`, or of each *.h5 file in the folder at `path`, by digest. Writes one line for
// each file: to `console.out` when it is whole, else to `console.problems`. There it also mentions files that a dead
// writer left in the folder and files that were set aside; these do not change the exit code. Returns kDone only if all
// files are whole, kNotDone if a file could not be checked or is not Holdfast's, else kDamaged. Throws Error for a
// folder that cannot be listed or has no such file.
int verify(FileSystem& files, const std::string& path, Console& console);

// Adds the subcommand with its options.
void add_verify(Subcommands& commands);

}  // namespace holdfast::cli
