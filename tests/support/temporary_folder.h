#pragma once

#include <string>
#include <vector>

namespace holdfast {

// Creates a new folder and deletes it, with everything in it, in the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // The names of its entries, sorted.
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

}  // namespace holdfast
