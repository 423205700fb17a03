#include "support/temporary_folder.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace holdfast {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMemory = "/dev/shm";
constexpr std::uintmax_t kEnoughMemory = std::uintmax_t{2} << 30;

// In memory where there is enough: on a disk that is written to by others, fsync() was seen to wait for a minute, which
// is longer than tests wait for anything. A TMPDIR is obeyed.
fs::path folder_for_tests() {
  std::error_code error;
  if (std::getenv("TMPDIR") == nullptr) {
    const fs::space_info memory = fs::space(kMemory, error);
    if (!error && memory.available >= kEnoughMemory) return kMemory;
  }
  return fs::temp_directory_path();
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (folder_for_tests() / "holdfast-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot create a folder like " + pattern);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<std::string> TemporaryFolder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace holdfast
