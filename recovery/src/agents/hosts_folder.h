#pragma once

// RUN_DIRECTORY/hosts: what the hosts of a run leave in the run directory about themselves.

#include <string>

namespace holdfast::recovery {

std::string hosts_folder_of(const std::string& run_directory);
// Throws Error of the file system.
void create_hosts_folder(const std::string& run_directory);

// RUN_DIRECTORY/hosts/NUMBER, with the lock of the host's agent.
std::string folder_of_host(const std::string& run_directory, int host);

// Whether there is a file or a folder; false also where that cannot be seen.
bool is_there(const std::string& path);
// The text of a file; empty if it cannot be read.
std::string text_in(const std::string& path);
// Writes a whole file (holdfast/base/whole_file.h). Throws Error of the file system.
void write_text(const std::string& path, const std::string& text);

}  // namespace holdfast::recovery
