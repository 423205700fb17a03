#pragma once

// State in memory that outlives the process that wrote it: the watchdog owns a memory file with two slots, and a worker
// writes the newest state into the older one of them. A slot counts only with a digest that its bytes agree with, so
// that a torn one is never taken, and the other is whole meanwhile.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

class MemorySnapshots {
 public:
  // Of the memory that holds two snapshots of up to `capacity_bytes`.
  static std::size_t memory_bytes(std::size_t capacity_bytes);

  // Writable memory of memory_bytes(), zero-filled or written by this class.
  explicit MemorySnapshots(SharedMemory memory);

  std::size_t capacity_bytes() const;

  // Has `write` put `bytes` bytes there, piece by piece from the first to the last (`begin` says where a piece begins),
  // and shows them to `accepts`, if there is one: the slot is whole when that, and this, return true. Asserts that
  // there is room.
  using Write = std::function<void(std::size_t begin, std::span<std::byte> piece)>;
  using Accepts = std::function<bool(std::span<const std::byte> written)>;
  bool write(int generation, std::int64_t step, std::size_t bytes, const Write& write, const Accepts& accepts = {});

  struct Whole {
    int generation = 0;
    std::int64_t step = 0;
    std::span<const std::byte> bytes;  // valid as long as the memory, and until the slot is written again
  };
  // The newest one by step, if any is whole; reads and digests it all. `memory` may be of any size and content.
  static std::optional<Whole> newest(const SharedMemory& memory);

 private:
  struct Header;
  Header& header(int slot);

  SharedMemory memory_;
};

}  // namespace holdfast::recovery
