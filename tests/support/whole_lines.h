#pragma once

#include <fstream>
#include <string>
#include <vector>

namespace holdfast {

// The whole lines of a file that may still grow: text after the last end of a line does not count yet.
inline std::vector<std::string> whole_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && !file.eof();) lines.push_back(line);
  return lines;
}

}  // namespace holdfast
