// A mark is new at each start of a head, so an old copy of a folder cannot pass for the shared one. The name of a run
// stays as long as its folder, also where folders are copied to another host. docs/decisions/agents.md

#include "agents/head_mark.h"

#include <algorithm>
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
    write_whole_file(posix_file_system(), run_name_path(run_directory), std::as_bytes(std::span(run)));
  }
  const std::string mark = to_text(new_link_key());
  write_whole_file(posix_file_system(), mark_path(run_directory), std::as_bytes(std::span(mark)));
  return mark;
}

bool is_head_mark_there(const std::string& run_directory, const std::string& mark) {
  return text_in(mark_path(run_directory)) == mark;
}

std::string run_name_path(const std::string& run_directory) {
  return run_directory + "/hosts/run";
}

// The folder of a run that was put aside is another one, so its successor begins without this file.
std::string run_in(const std::string& run_directory) {
  return name_or_none(text_in(run_name_path(run_directory)));
}

std::string text_in(const std::string& path) {
  try {
    return read_text_file(posix_file_system(), path);
  } catch (const Error&) {
    return "";
  }
}

// It travels in messages, which are UTF-8.
std::string name_or_none(const std::string& text) {
  const bool is_printable = std::ranges::all_of(text, [](char letter) { return letter >= ' ' && letter <= '~'; });
  return is_printable ? text : "";
}

}  // namespace holdfast::recovery
