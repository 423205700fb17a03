#pragma once

// What the kernel says about this process.

#include <cstddef>
#include <fstream>
#include <string>

namespace holdfast {

// A line of /proc/self/status, such as VmRSS or VmHWM, in bytes. 0 without such a line.
inline std::size_t status_of_process(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1)) * 1024;
  }
  return 0;
}

}  // namespace holdfast
