#pragma once

// Memory that follows a worker's life page. A worker that crashes leaves there where it was: addresses, and for each
// the file that was mapped there. The watchdog reads it after the worker's end and trusts none of it: the program that
// crashed may have written anything there.

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
  std::string path{};             // of the file; empty: none is mapped there
};

struct Crash {
  int signal = 0;
  std::vector<CrashFrame> frames{};  // innermost first; each but the first is where a call returns to
};

struct CrashPage {
  static constexpr std::size_t kBytes = 16384;
  static constexpr std::size_t kMostFrames = 48;
  static constexpr std::size_t kPathBytes = 240;  // a longer one loses its beginning, which tells the least

  enum class State : std::uint32_t { empty, begun, written };

  struct Frame {
    std::uint64_t address;
    std::uint64_t file_offset;
    std::array<char, kPathBytes> path;  // ends with 0
  };

  // Both take memory that holds the crash page after a life page. The watchdog's is zero-filled.
  static CrashPage& find(SharedMemory& memory);
  static std::optional<Crash> read(const SharedMemory& memory, int pid);

  std::atomic<State> state;
  std::int32_t pid;
  std::int32_t signal;
  std::uint32_t count;
  std::array<Frame, kMostFrames> frames;
};

static_assert(sizeof(CrashPage) <= CrashPage::kBytes);
static_assert(std::atomic<CrashPage::State>::is_always_lock_free);

}  // namespace holdfast::recovery
