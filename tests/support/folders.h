#pragma once

// Where this checkout and its programs lie. Tests ask for the folders here instead of getting them as macros, so that
// the objects of one clone are good for every other one, and a compiler cache finds them.

#include <string>

namespace holdfast {

// The root of the sources, without a slash at its end.
std::string source_folder();
// Where the programs of this build are, without a slash at its end.
std::string program_folder();

}  // namespace holdfast
