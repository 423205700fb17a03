#pragma once

#include <string>
#include <vector>

namespace holdfast {

// A new folder that is deleted with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // Of its entries, sorted.
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

}  // namespace holdfast
