#pragma once

// State in memory that outlives the process that wrote it: the watchdog owns a memory file with two slots, and a worker
// writes the newest state into the older one of them. A slot counts only with a digest that its bytes agree with, so
// that a torn one is never taken, and the other is whole meanwhile.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "holdfast/base/digest.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

class MemorySnapshots {
 public:
  // Of the memory that holds two snapshots of up to `capacity_bytes`.
  static std::size_t memory_bytes(std::size_t capacity_bytes);

  // Writable memory of memory_bytes(), zero-filled or written by this class.
  explicit MemorySnapshots(SharedMemory memory);

  std::size_t capacity_bytes() const;

  // Has the system find the memory of snapshots of `bytes`, which whoever writes there first would else wait for. What
  // is there stays. While nothing is written.
  void find_memory(std::size_t bytes);

  // Has `write` put `bytes` bytes there, piece by piece from the first to the last (`begin` says where a piece begins),
  // and shows them to `accepts`, if there is one: the slot is whole when that, and this, return true. Asserts that
  // there is room.
  using Write = std::function<void(std::size_t begin, std::span<std::byte> piece)>;
  using Accepts = std::function<bool(std::span<const std::byte> written)>;
  bool write(int generation, std::int64_t step, std::size_t bytes, const Write& write, const Accepts& accepts = {});

  // The same in two steps, for one that is filled by somebody else meanwhile: where to put `bytes` bytes, and behind
  // that finish(), which reads and digests them all and may be called on another thread. begin() once more gives the
  // first one up.
  std::span<std::byte> begin(std::size_t bytes);
  bool finish(int generation, std::int64_t step, const Accepts& accepts = {});

  // Where all of this lies.
  std::span<std::byte> memory() { return memory_.writable(); }

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
  bool commit(int generation, std::int64_t step, const Digest& digest, const Accepts& accepts);

  SharedMemory memory_;
  int open_slot_ = 0;                // that was begun last
  std::span<std::byte> open_bytes_;  // of it
};

}  // namespace holdfast::recovery
