#pragma once

// Files of arrays for tests, byte by byte, so that they may have any error.

#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "unit/data/support/idx_writer.h"

namespace holdfast {

// The working directory is a temporary folder as long as the object lives: for code with the short paths of documents.
class WorkInTemporaryFolder {
 public:
  WorkInTemporaryFolder() { std::filesystem::current_path(folder_ / ""); }
  ~WorkInTemporaryFolder() { std::filesystem::current_path(before_); }
  WorkInTemporaryFolder(const WorkInTemporaryFolder&) = delete;
  WorkInTemporaryFolder& operator=(const WorkInTemporaryFolder&) = delete;

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
  TemporaryFolder folder_;
};

template <typename T>
std::string text_of_elements(const std::vector<T>& elements) {
  std::string text(elements.size() * sizeof(T), '\0');
  std::memcpy(text.data(), elements.data(), text.size());
  return text;
}

// A .npy file of version 1.0: npy_bytes("<f4", "(2, 3)", elements).
std::string npy_bytes(const std::string& type, const std::string& shape, const std::string& elements,
                      const std::string& fortran = "False");
void write_npy(const std::string& path, const std::string& type, const std::string& shape, const std::string& elements,
               const std::string& fortran = "False");
// A ZIP archive of stored members.
void write_archive(const std::string& path, const std::vector<std::pair<std::string, std::string>>& members);
void write_safetensors_text(const std::string& path, const std::string& header, const std::string& elements);

}  // namespace holdfast
