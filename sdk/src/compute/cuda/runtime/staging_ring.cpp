// Copies from memory that is not pinned block inside CUDA without a deadline. So they go through pinned pieces, and
// every wait is for an event, which context_.wait_for() gives up in time. While one piece travels, the host copies the
// next. See docs/decisions/device-copies.md.

#include "compute/cuda/runtime/staging_ring.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include "compute/cuda/runtime/device_sentences.h"
#include "compute/cuda/runtime/small_copies.h"

namespace holdfast::compute {

StagingRing::~StagingRing() {
  if (!context_.lost_device().is_set()) return;
  // A kernel that hangs may still use the pieces, and to free them would wait for it.
  for (Piece& piece : pieces_) static_cast<void>(piece.memory.release());
}

StagingRing::Piece& StagingRing::piece(std::size_t number) {
  Piece& piece = pieces_[number % kPieces];
  // Made when first needed: a ring that only moves a few bytes needs one piece.
  if (piece.memory != nullptr) return piece;
  const CudaContext::StreamLock lock = context_.lock_stream();
  piece.copied = make_event();
  void* memory = nullptr;
  check_cuda(cudaHostAlloc(&memory, kPieceBytes, cudaHostAllocPortable),
             fmt::format("cudaHostAlloc of {} for copies to {}", in_bytes(kPieceBytes), context_.device()));
  piece.memory.reset(static_cast<std::byte*>(memory));
  return piece;
}

void StagingRing::queue(Piece& piece, std::byte* to, const std::byte* from, std::size_t bytes, cudaMemcpyKind kind) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  // The copy engine would let the few bytes at the end of a step wait for a snapshot on its way to the host. In the
  // other direction nothing as large travels while training waits for a few bytes.
  if (kind == cudaMemcpyDeviceToHost && bytes <= kMostSmallBytes) {
    copy_small_to_host(from, to, bytes, stream_);
  } else {
    check_cuda(cudaMemcpyAsync(to, from, bytes, kind, stream_), "cudaMemcpyAsync through pinned memory");
  }
  check_cuda(cudaEventRecord(piece.copied.get(), stream_), "cudaEventRecord after a copy");
}

void StagingRing::wait_for_piece(const Piece& piece, std::optional<Deadline> deadline) {
  context_.wait_for(piece.copied.get(), deadline.value_or(context_.deadline()),
                    "a copy between the host and " + context_.device());
}

void StagingRing::send(std::span<const std::byte> from, std::byte* to) {
  while (!from.empty()) {
    const std::span<const std::byte> part = from.first(std::min(from.size(), kPieceBytes));
    Piece& free = piece(next_++);
    // The device may still read what the host is about to overwrite.
    wait_for_piece(free);
    std::memcpy(free.memory.get(), part.data(), part.size());
    queue(free, to, free.memory.get(), part.size(), cudaMemcpyHostToDevice);
    from = from.subspan(part.size());
    to += part.size();
  }
}

void StagingRing::fetch(const std::byte* from, std::span<std::byte> to, std::optional<Deadline> deadline) {
  const std::size_t parts = (to.size() + kPieceBytes - 1) / kPieceBytes;
  const auto part_of = [&](std::size_t part) {
    const std::size_t begin = part * kPieceBytes;
    return to.subspan(begin, std::min(kPieceBytes, to.size() - begin));
  };
  const std::size_t first = next_;
  next_ += parts;
  std::size_t queued = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    // The buffer's last use need not be waited for, because the stream keeps the order.
    for (; queued < parts && queued < part + kPieces; ++queued) {
      Piece& target = piece(first + queued);
      queue(target, target.memory.get(), from + queued * kPieceBytes, part_of(queued).size(), cudaMemcpyDeviceToHost);
    }
    // In order: while this part is copied to its place, the next ones travel.
    const Piece& ready = piece(first + part);
    wait_for_piece(ready, deadline);
    std::memcpy(part_of(part).data(), ready.memory.get(), part_of(part).size());
  }
}

}  // namespace holdfast::compute
