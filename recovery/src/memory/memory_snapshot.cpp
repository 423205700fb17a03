// Two slots: a writer that dies in the middle spoils only the older snapshot. `is_whole` is written last and cleared
// first, and a reader checks the digest, since another process may write at the same time.
// See docs/recovery.md.

#include "holdfast/recovery/memory_snapshot.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr int kSlots = 2;
// Bytes are copied and digested piece by piece, so that the digest finds them in the cache.
constexpr std::size_t kPieceBytes = DigestBuilder::kLeafBytes;

// Whole pages, so that both slots begin at a page.
std::size_t slot_bytes(std::size_t memory_bytes) {
  return memory_bytes < kPageBytes ? 0 : (memory_bytes - kPageBytes) / kSlots / kPageBytes * kPageBytes;
}

}  // namespace

// The headers of both slots lie in the first page, and the slots follow it.
struct MemorySnapshots::Header {
  std::atomic<std::uint64_t> is_whole;  // written last, cleared first
  std::int64_t step;
  std::uint64_t bytes;
  std::int64_t generation;
  Digest digest;
};

std::size_t MemorySnapshots::memory_bytes(std::size_t capacity_bytes) {
  return kPageBytes + kSlots * ((capacity_bytes + kPageBytes - 1) / kPageBytes * kPageBytes);
}

MemorySnapshots::MemorySnapshots(SharedMemory memory) : memory_(std::move(memory)) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free && kSlots * sizeof(Header) <= kPageBytes);
  HOLDFAST_ASSERT(memory_.size_bytes() >= kPageBytes);
}

std::size_t MemorySnapshots::capacity_bytes() const {
  return slot_bytes(memory_.size_bytes());
}

void MemorySnapshots::find_memory(std::size_t bytes) {
  HOLDFAST_ASSERT(bytes <= capacity_bytes());
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    const std::span<std::byte> pages = memory_.writable().subspan(kPageBytes + slot * capacity_bytes(), bytes);
    for (std::size_t at = 0; at < pages.size(); at += kPageBytes) {
      volatile std::byte& byte = pages[at];
      // A write makes the kernel find the page now. Without it the first snapshot would take that time from a step.
      byte = byte;
    }
  }
}

MemorySnapshots::Header& MemorySnapshots::header(int slot) {
  return reinterpret_cast<Header*>(memory_.writable().data())[slot];
}

bool MemorySnapshots::write(int generation, std::int64_t step, std::size_t bytes, const Write& write,
                            const Accepts& accepts) {
  const std::span<std::byte> target = begin(bytes);
  DigestBuilder builder;
  for (std::size_t at = 0; at < bytes; at += kPieceBytes) {
    const std::span<std::byte> piece = target.subspan(at, std::min(bytes - at, kPieceBytes));
    write(at, piece);
    builder.update(piece);
  }
  return commit(generation, step, builder.finish(), accepts);
}

std::span<std::byte> MemorySnapshots::begin(std::size_t bytes) {
  HOLDFAST_ASSERT(bytes <= capacity_bytes());
  const bool first_is_newer = header(0).is_whole != 0 && (header(1).is_whole == 0 || header(0).step > header(1).step);
  // The older one is overwritten, so that a whole snapshot exists at any time.
  open_slot_ = first_is_newer ? 1 : 0;
  header(open_slot_).is_whole.store(0, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::size_t at = kPageBytes + static_cast<std::size_t>(open_slot_) * capacity_bytes();
  open_bytes_ = memory_.writable().subspan(at, bytes);
  return open_bytes_;
}

bool MemorySnapshots::finish(int generation, std::int64_t step, const Accepts& accepts) {
  return commit(generation, step, digest(open_bytes_), accepts);
}

bool MemorySnapshots::commit(int generation, std::int64_t step, const Digest& digest, const Accepts& accepts) {
  Header& target = header(open_slot_);
  target.step = step;
  target.bytes = open_bytes_.size();
  target.generation = generation;
  target.digest = digest;
  // Asked before the slot becomes whole. A refused snapshot leaves the other slot as the newest one.
  if (accepts && !accepts(open_bytes_)) return false;
  target.is_whole.store(1, std::memory_order_release);
  return true;
}

std::optional<MemorySnapshots::Whole> MemorySnapshots::newest(const SharedMemory& memory) {
  if (memory.size_bytes() < kPageBytes) return std::nullopt;
  const auto* headers = reinterpret_cast<const Header*>(memory.readable().data());
  std::array<int, kSlots> order{0, 1};
  if (headers[1].step > headers[0].step) std::swap(order[0], order[1]);
  // The newer one comes first. Where its writer died in the middle, the older one counts.
  for (const int slot : order) {
    const Header& header = headers[slot];
    const std::size_t capacity = slot_bytes(memory.size_bytes());
    const std::uint64_t size = header.bytes;  // read once, since another process may still write it
    if (header.is_whole.load(std::memory_order_acquire) != 1 || size > capacity) continue;
    const auto bytes = memory.readable().subspan(kPageBytes + static_cast<std::size_t>(slot) * capacity, size);
    if (digest(bytes) == header.digest) return Whole{static_cast<int>(header.generation), header.step, bytes};
  }
  return std::nullopt;
}

}  // namespace holdfast::recovery
