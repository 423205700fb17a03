// Processes come and go while /proc is read. So a file that is gone means a process that is gone, and is not an
// error.
#include "process_table.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "holdfast/base/whole_number.h"

namespace holdfast::resilience {
namespace {

namespace fs = std::filesystem;

std::string folder_of(int pid) {
  return fmt::format("/proc/{}", pid);
}

std::vector<ProcessEntry> processes_that(const std::function<bool(const ProcessEntry&)>& is_wanted) {
  std::vector<ProcessEntry> found;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    // The other names in /proc are not of processes.
    const std::optional<int> pid = whole_number<int>(entry.path().filename().string());
    const std::optional<ProcessEntry> process = pid ? process_entry(*pid) : std::nullopt;
    if (process && is_wanted(*process)) found.push_back(*process);
  }
  return found;
}

}  // namespace

std::optional<ProcessEntry> process_entry(int pid) {
  std::ifstream file(folder_of(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // The program's name is in parentheses and may contain any character, so the last one ends it.
  std::istringstream rest(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  ProcessEntry entry{.pid = pid};
  int group = 0;
  if (!(rest >> entry.state >> entry.parent >> group >> entry.session)) return std::nullopt;
  return entry;
}

std::vector<ProcessEntry> processes_of_session(int session) {
  return processes_that([session](const ProcessEntry& entry) { return entry.session == session; });
}

std::vector<ProcessEntry> children_of(int pid) {
  return processes_that([pid](const ProcessEntry& entry) { return entry.parent == pid; });
}

WatchdogSize holdings_of(int pid) {
  WatchdogSize holdings;
  std::ifstream file(folder_of(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    std::istringstream rest(line);
    std::string name;
    rest >> name;
    if (name == "VmRSS:") rest >> holdings.resident_kilobytes;
    if (name == "Threads:") rest >> holdings.threads;
  }
  // The folder of descriptors can be read only by the process's own user; for others the count is 0.
  std::error_code gone;
  for (fs::directory_iterator at(folder_of(pid) + "/fd", gone), end; !gone && at != end; at.increment(gone)) {
    ++holdings.descriptors;
  }
  return holdings;
}

}  // namespace holdfast::resilience
