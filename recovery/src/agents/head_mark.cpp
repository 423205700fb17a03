#include "agents/head_mark.h"

#include <filesystem>
#include <span>
#include <system_error>

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/whole_file.h"
#include "links/link_token.h"

namespace holdfast::recovery {
namespace {

std::string mark_path(const std::string& run_directory) {
  return run_directory + "/hosts/head";
}

std::string run_path(const std::string& run_directory) {
  return run_directory + "/hosts/run";
}

std::string text_of(const std::string& path) {
  try {
    return read_text_file(posix_file_system(), path);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

std::string folder_of_host(const std::string& run_directory, int host) {
  return fmt::format("{}/hosts/{}", run_directory, host);
}

std::string leave_head_mark(const std::string& run_directory) {
  std::error_code error;
  std::filesystem::create_directories(run_directory + "/hosts", error);
  if (error) throw system_error(error.value(), fmt::format("cannot create the folder {}/hosts", run_directory));
  if (run_in(run_directory).empty()) {
    const std::string run = to_text(new_link_key());
    write_whole_file(posix_file_system(), run_path(run_directory), std::as_bytes(std::span(run)));
  }
  const std::string mark = to_text(new_link_key());
  write_whole_file(posix_file_system(), mark_path(run_directory), std::as_bytes(std::span(mark)));
  return mark;
}

bool is_head_mark_there(const std::string& run_directory, const std::string& mark) {
  return text_of(mark_path(run_directory)) == mark;
}

// The folder of a run that was put aside is another one, so its successor begins without this file.
std::string run_in(const std::string& run_directory) {
  return text_of(run_path(run_directory));
}

}  // namespace holdfast::recovery
