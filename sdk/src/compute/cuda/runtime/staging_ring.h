#pragma once

// Copies between the device and host memory that is not registered with it, through a ring of pieces that are: the
// library's own way for such memory blocks the thread, without a deadline.

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "compute/cuda/runtime/cuda_context.h"

namespace holdfast::compute {

class StagingRing {
 public:
  // `stream` is one of the context's device, in whose order the copies are.
  StagingRing(CudaContext& context, cudaStream_t stream) : context_(context), stream_(stream) {}
  ~StagingRing();

  // On return `from` may change, and the copy is queued. Each piece is waited for as long as the context allows.
  void send(std::span<const std::byte> from, std::byte* to);
  // On return `to` holds what `from` held behind all that was queued before. As long for each piece, or by the
  // deadline.
  void fetch(const std::byte* from, std::span<std::byte> to) { fetch(from, to, std::nullopt); }
  void fetch(const std::byte* from, std::span<std::byte> to, std::optional<Deadline> deadline);

 private:
  // Enough of them that the host fills one while the device reads another, and large enough that the link is busy.
  static constexpr std::size_t kPieces = 4;
  static constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

  struct FreePinned {
    void operator()(std::byte* memory) const { static_cast<void>(cudaFreeHost(memory)); }
  };
  struct Piece {
    std::unique_ptr<std::byte, FreePinned> memory;
    OwnedEvent copied;  // recorded behind the last copy from or to it
  };

  // The memory is found at the first call: some devices are never copied to.
  Piece& piece(std::size_t number);
  void queue(Piece& piece, std::byte* to, const std::byte* from, std::size_t bytes, cudaMemcpyKind kind);
  void wait_for_piece(const Piece& piece, std::optional<Deadline> deadline = std::nullopt);

  CudaContext& context_;
  const cudaStream_t stream_;
  std::array<Piece, kPieces> pieces_;
  std::size_t next_ = 0;  // number of the piece that the next copy takes
};

}  // namespace holdfast::compute
