#pragma once

// Copies between the device and host memory that is not pinned, through a ring of pinned buffers. CUDA's own copies of
// such memory block the thread without a deadline.

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "compute/cuda/runtime/cuda_context.h"

namespace holdfast::compute {

class StagingRing {
 public:
  // `stream` belongs to the context's device. Copies are made in its order.
  StagingRing(CudaContext& context, cudaStream_t stream) : context_(context), stream_(stream) {}
  ~StagingRing();

  // Queues the copy. On return `from` may be changed. Waits for each buffer, no longer than the context's time limit.
  void send(std::span<const std::byte> from, std::byte* to);
  // On return `to` has the content of `from` after all work that was queued before. Waits for each buffer, until the
  // deadline, or without one no longer than the context's time limit.
  void fetch(const std::byte* from, std::span<std::byte> to) { fetch(from, to, std::nullopt); }
  void fetch(const std::byte* from, std::span<std::byte> to, std::optional<Deadline> deadline);

 private:
  // Several buffers, so that the host fills one while the device reads another. They are large enough to keep the link
  // busy.
  static constexpr std::size_t kPieces = 4;
  static constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

  struct FreePinned {
    void operator()(std::byte* memory) const { static_cast<void>(cudaFreeHost(memory)); }
  };
  struct Piece {
    std::unique_ptr<std::byte, FreePinned> memory;
    OwnedEvent copied;  // recorded after the last copy from or to this buffer
  };

  // The memory is allocated by the first call, because some devices are never copied to.
  Piece& piece(std::size_t number);
  void queue(Piece& piece, std::byte* to, const std::byte* from, std::size_t bytes, cudaMemcpyKind kind);
  void wait_for_piece(const Piece& piece, std::optional<Deadline> deadline = std::nullopt);

  CudaContext& context_;
  const cudaStream_t stream_;
  std::array<Piece, kPieces> pieces_;
  std::size_t next_ = 0;  // the number of the buffer that the next copy uses
};

}  // namespace holdfast::compute
