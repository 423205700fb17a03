// Each run gets a fresh run directory: a run in an existing one would be resumed, and would compare with nothing.

#include "run_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast::resilience {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunDirectory = "{run_dir}";
constexpr const char* kReplicas = "{replicas}";

bool replace_all(std::string& text, const std::string& from, const std::string& to) {
  bool was_there = false;
  // From the end of what was put in, which may contain the placeholder itself.
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
    was_there = true;
  }
  return was_there;
}

// mkdtemp() creates the folder itself, so two tests at once never share one.
std::string make_temporary_folder() {
  std::string pattern = folder_for_temporary_files() + "/holdfast-resilience-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw system_error(errno, fmt::format("cannot make a temporary folder like {}", pattern));
  }
  return pattern;
}

}  // namespace

std::string folder_for_temporary_files() {
  std::error_code failure;
  const fs::path folder = fs::temp_directory_path(failure);
  if (!failure) return folder.string();
  throw system_error(failure.value(),
                     "cannot use the folder for temporary files; let the variable TMPDIR name a folder that exists");
}

RunFolder::RunFolder(const std::string& wanted) {
  if (wanted.empty()) {
    temporary_ = make_temporary_folder();
    // A folder in the temporary one: the run may rename its directory or make others next to it.
    run_directory_ = temporary_ + "/run";
    return;
  }
  // A folder that was named is kept after the run, for somebody who wants to look at it.
  std::error_code failure;
  const bool exists = fs::exists(wanted, failure);
  if (failure) throw system_error(failure.value(), fmt::format("cannot look for the run directory {}", wanted));
  if (exists) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the run directory {} exists, so a run there would be resumed; name one that does not exist",
                    wanted));
  }
  fs::create_directories(wanted, failure);
  if (failure) throw system_error(failure.value(), fmt::format("cannot make the run directory {}", wanted));
  run_directory_ = wanted;
}

RunFolder::~RunFolder() {
  // A destructor must not throw, and a folder that stays costs only disk.
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

std::vector<std::string> command_of(const Program& program, const std::string& run_directory) {
  std::vector<std::string> command = program.command;
  if (command.empty()) throw Error(ErrorCode::invalid_argument, "cannot run a program: its command is empty");
  // A program that ignores the folder would leave no journal, and every run would look like a failure.
  bool has_folder = false;
  for (std::string& argument : command) {
    has_folder |= replace_all(argument, kRunDirectory, run_directory);
    replace_all(argument, kReplicas, std::to_string(program.replicas));
  }
  if (!has_folder) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "no argument of {0} contains {1}, which is replaced by the run directory of each run; add it, as in: "
            "--run-dir {1}",
            command.front(), kRunDirectory));
  }
  return command;
}

}  // namespace holdfast::resilience
