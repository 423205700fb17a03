// Nothing in the page is trusted: the program that wrote it had crashed. The reader checks each number before it uses
// it.

#include "process/crash_page.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "detect/life_page.h"
#include "holdfast/base/error.h"

namespace holdfast::recovery {

CrashPage& CrashPage::find(SharedMemory& memory) {
  HOLDFAST_ASSERT(memory.size_bytes() >= LifePage::kBytes + kBytes);
  return *std::launder(reinterpret_cast<CrashPage*>(memory.writable().data() + LifePage::kBytes));
}

// Reads from a copy, because processes that the worker started may still live and write.
std::optional<Crash> CrashPage::read(const SharedMemory& memory, int pid) {
  HOLDFAST_ASSERT(memory.size_bytes() >= LifePage::kBytes + kBytes);
  const auto bytes = std::make_unique<std::array<std::byte, sizeof(CrashPage)>>();
  std::memcpy(bytes->data(), memory.readable().data() + LifePage::kBytes, bytes->size());
  const auto& page = *reinterpret_cast<const CrashPage*>(bytes->data());
  if (page.state.load() != State::written || page.pid != pid) return std::nullopt;
  // The crashed program may have written anything here, and the loop below must stay in the page.
  if (page.count == 0 || page.count > kMostFrames) return std::nullopt;
  Crash crash{.signal = page.signal};
  for (std::uint32_t i = 0; i < page.count; ++i) {
    const Frame& frame = page.frames.at(i);
    const auto end = std::find(frame.path.begin(), frame.path.end(), '\0');
    crash.frames.push_back({.address = frame.address,
                            .file_offset = frame.file_offset,
                            .path = end == frame.path.end() ? "" : std::string(frame.path.begin(), end)});
  }
  return crash;
}

}  // namespace holdfast::recovery
