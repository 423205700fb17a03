#pragma once

// Finds what the replicas of a run have started, wherever it went: each replica has a mark in its environment, which
// its children inherit, theirs too, and daemons in sessions of their own. A process that was given another environment,
// or has written over its own, is not found.
//
// For a process that was forked and runs nothing else: next() and rewind() allocate nothing and take no lock.

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

// The member whose mark a process with this environment bears, as /proc/PID/environ has it.
std::optional<int> marked_member(std::string_view environment, std::string_view run);

class Marks {
 public:
  // Of a run that nobody else has.
  static Marks create();

  // "NAME=VALUE". A run within a replica of another run adds its own mark to that one's.
  std::string variable_of(int member) const;
  const std::string& run() const { return run_; }

 private:
  explicit Marks(std::string run) : run_(std::move(run)) {}

  std::string run_;
};

struct MarkedProcess {
  int member = -1;
  FileDescriptor process{};  // by which it can be signalled, whoever may have its number later
};

class MarkedProcesses {
 public:
  // Throws Error where /proc cannot be read. `run` outlives it.
  explicit MarkedProcesses(std::string_view run);
  ~MarkedProcesses();
  MarkedProcesses(const MarkedProcesses&) = delete;
  MarkedProcesses& operator=(const MarkedProcesses&) = delete;

  // That it reads by: a forked process that closes its descriptors keeps this one.
  int descriptor() const { return folder_.value(); }

  void rewind();
  // Of this host's processes the next one that lives and bears a mark of the run; empty behind the last. One that forks
  // meanwhile may hide its child from this pass.
  std::optional<MarkedProcess> next();

 private:
  const char* next_name();
  std::string_view environment_of(const char* pid);
  std::string_view read_environment(int process);

  const std::string_view run_;
  FileDescriptor folder_;
  char* environment_ = nullptr;
  std::size_t entries_end_ = 0;
  std::size_t entries_begin_ = 0;
  alignas(8) std::array<char, 32 * 1024> entries_{};
};

}  // namespace holdfast::recovery
