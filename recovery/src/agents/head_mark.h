#pragma once

// How the hosts of a run find out that they share its run directory: the head leaves a mark there, and tells each agent
// what it is. Savepoints would otherwise be scattered over the hosts, and a later start would not find the newest.

#include <string>

namespace holdfast::recovery {

// Returns the mark, which is new. For the owner of the run directory. Throws Error of the file system.
std::string leave_head_mark(const std::string& run_directory);
bool is_head_mark_there(const std::string& run_directory, const std::string& mark);

}  // namespace holdfast::recovery
