#pragma once

// The whole command but for the process around it: arguments in, exit code out.

#include <string>
#include <vector>

#include "console.h"
#include "holdfast/base/file_system.h"

namespace holdfast::cli {

// `arguments` without the program's name. Never throws: an error becomes a sentence on `console.problems` and the exit
// code kNotDone.
int run_command(const std::vector<std::string>& arguments, FileSystem& files, Console& console);

}  // namespace holdfast::cli
