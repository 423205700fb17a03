#pragma once

#include <fstream>
#include <string>
#include <vector>

namespace holdfast {

// Of a file that may be written meanwhile: what stands after the last end of a line is not there yet.
inline std::vector<std::string> whole_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && !file.eof();) lines.push_back(line);
  return lines;
}

}  // namespace holdfast
