#include "agents/hosts_folder.h"

#include <filesystem>
#include <span>
#include <system_error>

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/whole_file.h"

namespace holdfast::recovery {

std::string hosts_folder_of(const std::string& run_directory) {
  return run_directory + "/hosts";
}

void create_hosts_folder(const std::string& run_directory) {
  const std::string folder = hosts_folder_of(run_directory);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw system_error(error.value(), fmt::format("cannot create the folder {}", folder));
}

std::string folder_of_host(const std::string& run_directory, int host) {
  return fmt::format("{}/{}", hosts_folder_of(run_directory), host);
}

bool is_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::string text_in(const std::string& path) {
  try {
    return read_text_file(posix_file_system(), path);
  } catch (const Error&) {
    return "";
  }
}

void write_text(const std::string& path, const std::string& text) {
  write_whole_file(posix_file_system(), path, std::as_bytes(std::span(text)));
}

}  // namespace holdfast::recovery
