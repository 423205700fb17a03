#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "holdfast/base/digest.h"
#include "support/program.h"

namespace holdfast {

// Digests of all files in a folder and below it, by their paths there. Two results are equal if nothing was written,
// renamed or removed between them.
inline std::map<std::string, std::string> file_digests(const std::string& folder) {
  std::map<std::string, std::string> digests;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().lexically_relative(folder);
    if (!entry.is_regular_file()) {
      digests[path] = entry.is_directory() ? "a folder" : "not a file";
      continue;
    }
    const std::string bytes = read_file(entry.path());
    digests[path] = digest(std::as_bytes(std::span(bytes))).hex();
  }
  return digests;
}

}  // namespace holdfast
