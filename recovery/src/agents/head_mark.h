#pragma once

// How the hosts of a run find out that they share its run directory: the head leaves a mark there, and tells each agent
// what it is. Savepoints would otherwise be scattered over the hosts, and a later start would not find the newest.

#include <string>

namespace holdfast::recovery {

// RUN_DIRECTORY/hosts/NUMBER, with the lock of the host's agent.
std::string folder_of_host(const std::string& run_directory, int host);

// Returns the mark, which is new. For the owner of the run directory. Throws Error of the file system.
std::string leave_head_mark(const std::string& run_directory);
bool is_head_mark_there(const std::string& run_directory, const std::string& mark);

// The name of the run in this folder, which tells it from one that was begun anew there, whatever head it has; empty if
// no head of several hosts has been there.
std::string run_in(const std::string& run_directory);
std::string run_name_path(const std::string& run_directory);

// The text of a file; empty if it cannot be read.
std::string text_in(const std::string& path);
// A text of printable letters of ASCII, or none.
std::string name_or_none(const std::string& text);

}  // namespace holdfast::recovery
