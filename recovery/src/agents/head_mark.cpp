// A mark is new at each start of a head, so an old copy of a folder cannot pass for the shared one. The name of a run
// stays as long as its folder, also where folders are copied to another host. docs/decisions/agents.md

#include "agents/head_mark.h"

#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/whole_file.h"
#include "holdfast/recovery/run_start.h"
#include "links/link_token.h"

namespace holdfast::recovery {
namespace {

// Ends the name of a run that was begun anew on purpose.
constexpr std::string_view kAnew = " anew";

std::string mark_path(const std::string& run_directory) {
  return run_directory + "/hosts/head";
}

std::string run_path(const std::string& run_directory) {
  return run_directory + "/hosts/run";
}

std::string text_in(const std::string& path) {
  try {
    return read_text_file(posix_file_system(), path);
  } catch (const Error&) {
    return "";
  }
}

void create_hosts_folder(const std::string& run_directory) {
  std::error_code error;
  std::filesystem::create_directories(run_directory + "/hosts", error);
  if (error) throw system_error(error.value(), fmt::format("cannot create the folder {}/hosts", run_directory));
}

void write_run(const std::string& run_directory, const std::string& run) {
  write_whole_file(posix_file_system(), run_path(run_directory), std::as_bytes(std::span(run)));
}

}  // namespace

std::string folder_of_host(const std::string& run_directory, int host) {
  return fmt::format("{}/hosts/{}", run_directory, host);
}

FolderOfHead leave_head_mark(const std::string& run_directory, bool is_begun_anew) {
  create_hosts_folder(run_directory);
  if (run_in(run_directory).empty()) {
    write_run(run_directory, fmt::format("{}{}", to_text(new_link_key()), is_begun_anew ? kAnew : ""));
  }
  const std::string mark = to_text(new_link_key());
  write_whole_file(posix_file_system(), mark_path(run_directory), std::as_bytes(std::span(mark)));
  return {.mark = mark, .run = run_in(run_directory), .is_empty = !holds_savepoints(run_directory)};
}

bool is_head_mark_there(const std::string& run_directory, const std::string& mark) {
  return text_in(mark_path(run_directory)) == mark;
}

// The folder of a run that was put aside is another one, so its successor begins without this file.
std::string run_in(const std::string& run_directory) {
  return text_in(run_path(run_directory));
}

void begin_folder(const std::string& run_directory, const std::string& run) {
  create_hosts_folder(run_directory);
  write_run(run_directory, run);
}

FolderOfAgent take_folder(const std::string& run_directory, const FolderOfHead& head) {
  const std::string here = run_in(run_directory);
  if (here == head.run) return FolderOfAgent::of_the_run;
  const bool has_run = !here.empty() || holds_run(run_directory);
  if (has_run && head.run.ends_with(kAnew)) return FolderOfAgent::of_an_earlier_one;
  if (has_run && !head.is_empty) return FolderOfAgent::of_another_one;
  begin_folder(run_directory, head.run);
  return has_run ? FolderOfAgent::taken_over : FolderOfAgent::of_the_run;
}

}  // namespace holdfast::recovery
