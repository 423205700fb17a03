#pragma once

#include <fstream>
#include <string>
#include <vector>

namespace holdfast {

// The complete lines of a file that may still grow. Text after the last line end is left out.
inline std::vector<std::string> whole_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && !file.eof();) lines.push_back(line);
  return lines;
}

}  // namespace holdfast
