#include "holdfast/base/temporary_files.h"

#include <random>

namespace holdfast {
namespace {

constexpr std::string_view kMark = ".tmp-";
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::size_t kDigits = 16;

}  // namespace

std::string temporary_path(const std::string& path) {
  // Random and not the process id: ids repeat in another container and after a restart.
  std::random_device random;
  std::uniform_int_distribution<std::size_t> digit(0, kHexDigits.size() - 1);
  std::string result = path + std::string(kMark);
  for (std::size_t i = 0; i < kDigits; ++i) result += kHexDigits[digit(random)];
  return result;
}

bool is_temporary_name(std::string_view name) {
  const std::size_t tail = kMark.size() + kDigits;
  if (name.size() <= tail) return false;
  // The whole pattern is compared, because remove_temporary_files() deletes what matches.
  const std::string_view digits = name.substr(name.size() - kDigits);
  return name.substr(name.size() - tail, kMark.size()) == kMark &&
         digits.find_first_not_of(kHexDigits) == std::string_view::npos;
}

std::vector<std::string> remove_temporary_files(FileSystem& files, const std::string& folder) {
  std::vector<std::string> removed;
  for (const std::string& name : files.list(folder)) {
    if (!is_temporary_name(name)) continue;
    files.remove(path_in_folder(folder, name));
    removed.push_back(name);
  }
  return removed;
}

}  // namespace holdfast
