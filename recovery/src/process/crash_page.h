#pragma once

// The crash page follows a worker's life page in shared memory. A worker that crashes leaves its stack there:
// addresses, and for each the file that was mapped there. The watchdog reads it after the worker's end and trusts
// nothing in it, because the crashed program may have written anything.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

struct CrashFrame {
  std::uint64_t address = 0;
  std::uint64_t file_offset = 0;  // of the address, in the file
  std::string path{};             // of the file; empty: no file is mapped there
};

struct Crash {
  int signal = 0;
  std::vector<CrashFrame> frames{};  // innermost first; all but the first are return addresses
};

struct CrashPage {
  static constexpr std::size_t kBytes = 16384;
  static constexpr std::size_t kMostFrames = 48;
  static constexpr std::size_t kPathBytes = 240;  // a longer path loses its beginning, which says the least

  enum class State : std::uint32_t { empty, begun, written };

  struct Frame {
    std::uint64_t address;
    std::uint64_t file_offset;
    std::array<char, kPathBytes> path;  // ends with 0
  };

  // Both take memory that holds a life page and then the crash page. The watchdog creates it zero-filled.
  static CrashPage& find(SharedMemory& memory);
  static std::optional<Crash> read(const SharedMemory& memory, int pid);

  // Written by the worker when it crashes, and read by the watchdog after its end.
  std::atomic<State> state;
  std::int32_t pid;
  std::int32_t signal;
  std::uint32_t count;
  std::array<Frame, kMostFrames> frames;
};

static_assert(sizeof(CrashPage) <= CrashPage::kBytes);
static_assert(std::atomic<CrashPage::State>::is_always_lock_free);

}  // namespace holdfast::recovery
