#pragma once

// Paths of groups, layers and arrays in Keras's files: parts separated by '/'. The root's path is empty.

#include <string>
#include <string_view>

namespace holdfast::format {

inline std::string join_path(const std::string& path, const std::string& part) {
  return path.empty() ? part : path + "/" + part;
}

inline std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace holdfast::format
