#include "hdf5/tree_names.h"

#include "hdf5/tree.h"
#include "utf8.h"

namespace holdfast::format {

std::string problem_of_name(std::string_view name) {
  if (name.empty() || name == "." || name == "..") return "has a part that is empty, \".\" or \"..\"";
  if (name.find('/') != std::string_view::npos) return "has a part with '/' inside";
  return is_utf8(name) ? "" : "is not UTF-8 text";
}

std::string problem_of_path(std::string_view path) {
  if (path.size() > kMaxTreePathBytes) return "is longer than " + std::to_string(kMaxTreePathBytes) + " bytes";
  for (std::size_t parts = 1;; ++parts) {
    if (parts > kMaxTreePathParts) return "lies in more than " + std::to_string(kMaxTreePathParts - 1) + " groups";
    const std::size_t slash = path.find('/');
    const std::string problem = problem_of_name(path.substr(0, slash));
    if (!problem.empty() || slash == std::string_view::npos) return problem;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace holdfast::format
