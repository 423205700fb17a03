#pragma once

// State in memory that outlives the process that wrote it. The watchdog owns a memory file with two slots, and a worker
// writes the newest state into the older of the two. A slot counts only when its bytes agree with its digest. So a torn
// slot is never taken, and the other one is whole meanwhile.
//
//   MemorySnapshots snapshots = worker.request_snapshot_memory(state.size(), deadline);
//   snapshots.write(worker.generation(), step, state.size(), [&](std::size_t begin, std::span<std::byte> piece) {
//     std::memcpy(piece.data(), state.data() + begin, piece.size());
//   });

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "holdfast/base/digest.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

// One thread at a time may use it.
class MemorySnapshots {
 public:
  // The size of memory that holds two snapshots of up to `capacity_bytes` each.
  static std::size_t memory_bytes(std::size_t capacity_bytes);

  // `memory` is writable, has memory_bytes(), and is zero or was written by this class.
  explicit MemorySnapshots(SharedMemory memory);

  // The largest snapshot that fits.
  std::size_t capacity_bytes() const;

  // Makes the system provide the pages for snapshots of `bytes`. Otherwise the first write to each slot waits for them.
  // Keeps what is there. Must not be called while a snapshot is being written.
  void find_memory(std::size_t bytes);

  // Fills a piece of a slot; `begin` is its offset.
  using Write = std::function<void(std::size_t begin, std::span<std::byte> piece)>;
  // Looks at all bytes of a slot; false: the slot does not count.
  using Accepts = std::function<bool(std::span<const std::byte> written)>;
  // Calls `write` to fill the slot with `bytes` bytes, piece by piece from the first to the last. Then shows all bytes
  // to `accepts`, if there is one. The slot counts only when `accepts` returns true; write() returns whether it counts.
  // Asserts that there is room.
  bool write(int generation, std::int64_t step, std::size_t bytes, const Write& write, const Accepts& accepts = {});

  // The same in two steps, for a slot that is filled by other means. begin() returns the memory for `bytes` bytes.
  // finish() reads and digests them all, and may be called on another thread. Another begin() before that abandons the
  // slot.
  std::span<std::byte> begin(std::size_t bytes);
  // Returns whether the slot counts.
  bool finish(int generation, std::int64_t step, const Accepts& accepts = {});

  // The whole memory, both slots and their headers.
  std::span<std::byte> memory() { return memory_.writable(); }

  // A snapshot that was written to its end and whose digest is right.
  struct Whole {
    int generation = 0;                // that wrote it
    std::int64_t step = 0;             // of the state in it
    std::span<const std::byte> bytes;  // valid as long as the memory, and until the slot is written again
  };
  // The whole snapshot with the highest step, if there is one. Reads and digests all its bytes. `memory` may have any
  // size and content.
  static std::optional<Whole> newest(const SharedMemory& memory);

 private:
  struct Header;
  Header& header(int slot);
  bool commit(int generation, std::int64_t step, const Digest& digest, const Accepts& accepts);

  SharedMemory memory_;
  int open_slot_ = 0;                // the slot that was begun last
  std::span<std::byte> open_bytes_;  // in that slot
};

}  // namespace holdfast::recovery
