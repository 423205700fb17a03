#include "journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <fstream>
#include <system_error>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"

namespace holdfast::recovery {
namespace {

// Holds a Restart; no other line has it, whatever workers report.
constexpr const char* kRestartEntry = "restart";

bool ends_in_the_middle_of_a_line(int file) {
  const off_t bytes = ::lseek(file, 0, SEEK_END);
  char last = '\n';
  return bytes > 0 && ::pread(file, &last, 1, bytes - 1) == 1 && last != '\n';
}

// Calls take(line) for each line that is a JSON object.
template <typename Take>
void read_lines(const std::string& journal_path, const Take& take) {
  std::ifstream file(journal_path);
  for (std::string text; std::getline(file, text);) {
    const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object()) continue;
    try {
      take(line);
    } catch (const nlohmann::json::exception& error) {
      log(LogLevel::warning, "a line of " + journal_path + " is skipped: " + error.what());
    }
  }
}

}  // namespace

double unix_seconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::microseconds>(now).count()) / 1'000'000;
}

nlohmann::json to_json(const Restart& restart) {
  return {{"generation", restart.generation},
          {"rank", restart.rank},
          {"cause", restart.cause},
          {"detected", restart.detected_unix_seconds},
          {"step", restart.step}};
}

Restart restart_from_json(const nlohmann::json& json) {
  return {.generation = json.at("generation").get<int>(),
          .rank = json.at("rank").get<int>(),
          .cause = json.at("cause").get<std::string>(),
          .detected_unix_seconds = json.at("detected").get<double>(),
          .step = json.at("step").get<std::int64_t>()};
}

void RestartCounts::add(const Restart& restart) {
  ++all;
  ++by_rank[restart.rank];
}

std::string journal_path(const std::string& run_directory) {
  return run_directory + "/journal.jsonl";
}

Past read_past(const std::string& journal_path) {
  Past past;
  read_lines(journal_path, [&](const nlohmann::json& line) {
    past.last_generation = std::max(past.last_generation, line.value("generation", -1));
    if (line.contains(kRestartEntry)) past.restarts.add(restart_from_json(line.at(kRestartEntry)));
  });
  return past;
}

std::vector<Restart> read_restarts(const std::string& journal_path) {
  std::vector<Restart> restarts;
  read_lines(journal_path, [&](const nlohmann::json& line) {
    if (line.contains(kRestartEntry)) restarts.push_back(restart_from_json(line.at(kRestartEntry)));
  });
  return restarts;
}

Journal::Journal(const std::string& path)
    : path_(path), file_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (!file_.is_open()) throw system_error(errno, "cannot open the journal " + path);
  // Otherwise the first line would become part of the torn one.
  if (ends_in_the_middle_of_a_line(file_.value()) && ::write(file_.value(), "\n", 1) != 1) {
    throw system_error(errno, "cannot write to the journal " + path);
  }
}

void Journal::append(nlohmann::json line) {
  line["time"] = unix_seconds_now();
  const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  ssize_t written = -1;
  do {
    written = ::write(file_.value(), text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(text.size())) return;
  const std::string why = written < 0 ? std::generic_category().message(errno) : "only a part was written";
  log(LogLevel::warning, "a line of " + path_ + " is lost: " + why);
}

void Journal::append_restart(const Restart& restart) {
  append({{"event", "restart"},
          {"generation", restart.generation},
          {"rank", restart.rank},
          {kRestartEntry, to_json(restart)}});
}

}  // namespace holdfast::recovery
