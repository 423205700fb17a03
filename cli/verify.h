#pragma once

// `holdfast verify FILE|FOLDER`: are the files whole, to the last bit of every array?

#include <ostream>
#include <string>

#include "holdfast/base/file_system.h"

namespace holdfast::cli {

// Checks the file at `path`, or each *.h5 file in the folder at `path`: the digest of the whole file, then of every
// array. Writes one line for each file: to `out` when it is whole, else to `problems`. Returns the exit code: kWhole
// only if all of them are, kNotDone if one could not be checked, else kDamaged. Throws Error for a folder that cannot
// be listed or has no such file.
int verify(FileSystem& files, const std::string& path, std::ostream& out, std::ostream& problems);

}  // namespace holdfast::cli
