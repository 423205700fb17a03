#include "holdfast/recovery/faults.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <limits>
#include <span>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {
namespace {

constexpr int kExitCode = 3;

constexpr std::array<std::pair<std::string_view, FaultKind>, 6> kKinds{{{"kill", FaultKind::kill},
                                                                        {"stop", FaultKind::stop},
                                                                        {"throw", FaultKind::throw_exception},
                                                                        {"hang", FaultKind::hang},
                                                                        {"exit", FaultKind::exit},
                                                                        {"kill-watchdog", FaultKind::kill_watchdog}}};

constexpr std::array<std::pair<std::string_view, FaultPhase>, 4> kPhases{{{"compute", FaultPhase::compute},
                                                                          {"reduce", FaultPhase::reduce},
                                                                          {"update", FaultPhase::update},
                                                                          {"save", FaultPhase::save}}};

// Reads one specification; `seen_` tells which keys it has had.
class Parser {
 public:
  Parser(std::string_view specification, int replicas) : specification_(specification), replicas_(replicas) {
    fault_.specification = std::string(specification);
  }

  Fault parse() {
    std::string_view rest = specification_;
    while (true) {
      const std::size_t comma = rest.find(',');
      take(rest.substr(0, comma));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    for (const std::string_view key : {"rank", "step", "fault"}) {
      if (!has_seen(key)) fail("lacks " + std::string(key) + "=");
    }
    return std::move(fault_);
  }

 private:
  void take(std::string_view pair) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) fail("has \"" + std::string(pair) + "\" where KEY=VALUE is expected");
    const std::string_view key = pair.substr(0, equals);
    const std::string_view value = pair.substr(equals + 1);
    if (has_seen(key)) fail("gives " + std::string(key) + " twice");
    seen_.push_back(key);
    assign(key, value);
  }

  void assign(std::string_view key, std::string_view value) {
    if (key == "rank") {
      fault_.rank = static_cast<int>(number(key, value, replicas_ - 1));
    } else if (key == "step") {
      fault_.step = number(key, value, std::numeric_limits<std::int64_t>::max());
    } else if (key == "generation") {
      fault_.generation = static_cast<int>(number(key, value, std::numeric_limits<int>::max()));
    } else if (key == "fault") {
      fault_.kind = choice(key, value, kKinds);
    } else if (key == "phase") {
      fault_.phase = choice(key, value, kPhases);
    } else {
      fail("has the unknown key \"" + std::string(key) + "\"; allowed are rank, step, fault, phase and generation");
    }
  }

  std::int64_t number(std::string_view key, std::string_view text, std::int64_t highest) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
    if (error != std::errc{} || end != text.end() || value < 0 || value > highest) {
      fail("has " + std::string(key) + "=" + std::string(text) + " where a number from 0 to " +
           std::to_string(highest) + " is allowed");
    }
    return value;
  }

  template <typename Choices>
  typename Choices::value_type::second_type choice(std::string_view key, std::string_view text,
                                                   const Choices& choices) const {
    std::string allowed;
    for (const auto& [name, value] : choices) {
      if (name == text) return value;
      allowed += (allowed.empty() ? "" : ", ") + std::string(name);
    }
    fail("has " + std::string(key) + "=" + std::string(text) + "; allowed are " + allowed);
  }

  bool has_seen(std::string_view key) const { return std::find(seen_.begin(), seen_.end(), key) != seen_.end(); }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::invalid_argument, "the fault \"" + std::string(specification_) + "\" " + what);
  }

  std::string_view specification_;
  int replicas_;
  Fault fault_;
  std::vector<std::string_view> seen_;
};

void sync_folder(const std::string& path) {
  const FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open() || ::fsync(folder.value()) != 0) throw system_error(errno, "cannot sync " + path);
}

[[noreturn]] void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

Fault parse_fault(std::string_view specification, int replicas) {
  return Parser(specification, replicas).parse();
}

Faults::Faults(std::vector<Fault> faults, Place place)
    : faults_(std::move(faults)), place_(std::move(place)), rank_(place_.rank), generation_(place_.generation) {}

void Faults::move_to(int rank, int generation) {
  rank_ = rank;
  generation_ = generation;
}

void Faults::reach(FaultPhase phase, std::int64_t step) const {
  for (std::size_t index = 0; index < faults_.size(); ++index) {
    if (is_due(faults_[index], phase, step) && mark_as_fired(index)) fire(faults_[index]);
  }
}

bool Faults::is_due(const Fault& fault, FaultPhase phase, std::int64_t step) const {
  const int generation = generation_;
  return fault.rank == rank_ && fault.step == step && fault.phase == phase &&
         fault.generation.value_or(generation) == generation;
}

bool Faults::mark_as_fired(std::size_t index) const {
  const std::string folder = place_.run_directory + "/faults";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw system_error(error.value(), "cannot create " + folder);
  const std::string hash = digest(std::as_bytes(std::span(faults_[index].specification))).hex().substr(0, 16);
  const std::string path = folder + "/" + std::to_string(index) + "-" + hash + ".fired";
  const FileDescriptor mark(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!mark.is_open() && errno == EEXIST) return false;
  if (!mark.is_open() || ::fsync(mark.value()) != 0) throw system_error(errno, "cannot write the mark " + path);
  sync_folder(folder);
  return true;
}

void Faults::fire(const Fault& fault) const {
  switch (fault.kind) {
    case FaultKind::kill:
      ::kill(::getpid(), SIGKILL);
      sleep_for_ever();
    case FaultKind::stop:
      ::kill(::getpid(), SIGSTOP);
      return;
    case FaultKind::throw_exception:
      throw std::runtime_error("injected exception (" + fault.specification + ")");
    case FaultKind::hang:
      sleep_for_ever();
    case FaultKind::exit:
      ::_exit(kExitCode);
    // The watchdog's death takes this process with it.
    case FaultKind::kill_watchdog:
      ::kill(place_.watchdog_pid, SIGKILL);
      sleep_for_ever();
  }
}

}  // namespace holdfast::recovery
