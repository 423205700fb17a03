#pragma once

// Finds the processes that the replicas of a run have started. Each replica has a mark in its environment, which its
// children inherit, and their children, and daemons in sessions of their own. A process that was given another
// environment, or has overwritten its own, is not found.
//
// next() and rewind() allocate nothing and take no lock, so that a forked process may use them.

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

// The member whose mark is in this environment, which is in the format of /proc/PID/environ.
std::optional<int> marked_member(std::string_view environment, std::string_view run);

class Marks {
 public:
  // Marks that no other run has.
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
  FileDescriptor process{};  // a pidfd: signals reach this process alone, even if its number is reused
};

class MarkedProcesses {
 public:
  // Throws Error when /proc cannot be read. `run` outlives it.
  explicit MarkedProcesses(std::string_view run);
  ~MarkedProcesses();
  MarkedProcesses(const MarkedProcesses&) = delete;
  MarkedProcesses& operator=(const MarkedProcesses&) = delete;

  // The descriptor that it reads by. A forked process that closes its descriptors keeps this one.
  int descriptor() const { return folder_.value(); }

  void rewind();
  // The next live process of this host with a mark of the run; empty after the last. A process that forks meanwhile
  // may hide its child from this pass.
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
