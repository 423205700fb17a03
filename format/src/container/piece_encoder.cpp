// Plans all pieces first and encodes them later, in any order and in any process. The plan depends only
// on names, shapes and options, so every thread and every replica makes the same one. The bytes of the
// file do not depend on which of them encoded what.

#include "container/piece_encoder.h"

#include <algorithm>
#include <utility>

#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

constexpr std::size_t kLeafBytes = DigestBuilder::kLeafBytes;

std::size_t leaf_count(std::size_t bytes) {
  return (bytes + kLeafBytes - 1) / kLeafBytes;
}

}  // namespace

PieceEncoder::Workspace::Workspace(const WriteOptions& options)
    : chunk_encoder(options.compression == Compression::zstd ? std::optional(options.zstd_level) : std::nullopt) {}

PieceEncoder::PieceEncoder(const ArrayView& metadata, std::span<const ArrayView> arrays, Compression compression) {
  plan(metadata, Storage::contiguous);
  for (const ArrayView& array : arrays) {
    const bool is_small = array.bytes.size() <= kMaxUncompressedBytes;
    plan(array, compression == Compression::none || is_small ? Storage::contiguous : Storage::zstd);
  }
  plan_runs();
}

// Results are stored by number, so that runs can be encoded in any order.
void PieceEncoder::plan(const ArrayView& view, Storage storage) {
  const std::size_t array = arrays_.size();
  if (storage == Storage::zstd) {
    const ChunkGrid grid(view.shape, size_bytes(view.dtype));
    // A piece has the bytes of its chunk without padding, which only the encoder adds.
    for (std::uint64_t i = 0; i < grid.count(); ++i) {
      const ChunkGrid::Piece piece = grid.piece(i);
      pieces_.push_back({array, i, piece.first_byte, piece.bytes});
    }
  } else {
    for (std::size_t begin = 0; begin < view.bytes.size(); begin += kMaxChunkBytes) {
      const std::size_t bytes = std::min(kMaxChunkBytes, view.bytes.size() - begin);
      pieces_.push_back({array, begin / kMaxChunkBytes, begin, bytes});
    }
  }
  const std::size_t count = !pieces_.empty() && pieces_.back().array == array ? pieces_.back().number + 1 : 0;
  arrays_.push_back({view, storage, std::vector<Piece>(count), std::vector<Digest>(leaf_count(view.bytes.size()))});
  bytes_ += view.bytes.size();
}

void PieceEncoder::plan_runs() {
  // Small pieces are collected into runs of about 1 MiB, which are written with one system call.
  // Full, so that the first piece begins a run.
  std::size_t run_bytes = kMaxChunkBytes;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (run_bytes >= kMaxChunkBytes) {
      runs_.push_back({.first_piece = i, .piece_count = 0});
      run_bytes = 0;
    }
    ++runs_.back().piece_count;
    run_bytes += pieces_[i].bytes;
  }
}

std::uint64_t PieceEncoder::bytes_of(const Run& run) const {
  std::uint64_t bytes = 0;
  for (const PlannedPiece& piece : pieces_of(run)) bytes += piece.bytes;
  return bytes;
}

std::span<const PieceEncoder::PlannedPiece> PieceEncoder::pieces_of(const Run& run) const {
  return std::span(pieces_).subspan(run.first_piece, run.piece_count);
}

std::span<const std::byte> PieceEncoder::bytes_of(const PlannedPiece& piece) const {
  return arrays_[piece.array].view.bytes.subspan(piece.first_byte, piece.bytes);
}

// Leaves lie at multiples of kLeafBytes of the array, and pieces need not begin at one.
std::pair<std::size_t, std::size_t> PieceEncoder::leaves_of(const PlannedPiece& piece) const {
  return {leaf_count(piece.first_byte), leaf_count(piece.first_byte + piece.bytes)};
}

std::span<const std::byte> PieceEncoder::encode(const Run& run, Workspace& workspace) {
  // A large piece is written from where it is, without a copy.
  if (run.piece_count == 1) return encode_piece(pieces_[run.first_piece], workspace.chunk_encoder);
  workspace.bytes.clear();
  for (const PlannedPiece& piece : pieces_of(run)) {
    const std::span<const std::byte> stored = encode_piece(piece, workspace.chunk_encoder);
    workspace.bytes.insert(workspace.bytes.end(), stored.begin(), stored.end());
    workspace.bytes.resize(aligned(workspace.bytes.size()));
  }
  return workspace.bytes;
}

std::span<const std::byte> PieceEncoder::encode_piece(const PlannedPiece& piece, ChunkEncoder& encoder) {
  PlannedArray& array = arrays_[piece.array];
  const auto [first, last] = leaves_of(piece);
  // A leaf may reach into the next piece. It belongs to the piece in which it begins.
  for (std::size_t leaf = first; leaf < last; ++leaf) {
    const std::span<const std::byte> rest = array.view.bytes.subspan(leaf * kLeafBytes);
    array.leaves[leaf] = digest_leaf(rest.first(std::min(kLeafBytes, rest.size())));
  }
  std::span<const std::byte> stored = bytes_of(piece);
  Digest stored_digest;
  if (array.storage == Storage::contiguous) {
    // Pieces of an uncompressed array are whole leaves, so their digests need no second pass.
    stored_digest = digest_of_leaves(std::span(array.leaves).subspan(first, last - first), stored.size());
  } else {
    const ChunkGrid grid(array.view.shape, size_bytes(array.view.dtype));
    stored = encoder.encode(stored, grid.chunk_bytes(), size_bytes(array.view.dtype));
    stored_digest = digest(stored);
  }
  array.pieces[piece.number] = {static_cast<std::uint32_t>(stored.size()), stored_digest};
  return stored;
}

// Digests travel between processes, and the bytes do not: each process writes its own.
PieceEncoder::RunResult PieceEncoder::result(const Run& run) const {
  RunResult result;
  for (const PlannedPiece& piece : pieces_of(run)) {
    const auto [first, last] = leaves_of(piece);
    const std::vector<Digest>& leaves = arrays_[piece.array].leaves;
    result.pieces.push_back(arrays_[piece.array].pieces[piece.number]);
    result.leaves.insert(result.leaves.end(), leaves.begin() + static_cast<std::ptrdiff_t>(first),
                         leaves.begin() + static_cast<std::ptrdiff_t>(last));
  }
  return result;
}

// A result of another process is checked before it is taken, because its options may differ.
bool PieceEncoder::fits(const Run& run, const RunResult& result) const {
  std::size_t leaves = 0;
  for (const PlannedPiece& piece : pieces_of(run)) {
    const auto [first, last] = leaves_of(piece);
    leaves += last - first;
  }
  return result.pieces.size() == run.piece_count && result.leaves.size() == leaves;
}

void PieceEncoder::set_result(const Run& run, const RunResult& result) {
  HOLDFAST_ASSERT(fits(run, result));
  auto stored = result.pieces.begin();
  auto leaf_digest = result.leaves.begin();
  for (const PlannedPiece& piece : pieces_of(run)) {
    arrays_[piece.array].pieces[piece.number] = *stored++;
    const auto [first, last] = leaves_of(piece);
    for (std::size_t leaf = first; leaf < last; ++leaf) arrays_[piece.array].leaves[leaf] = *leaf_digest++;
  }
}

// The digest of an array is that of its leaves, so no second pass over its bytes is needed.
IndexedArray PieceEncoder::indexed(const PlannedArray& array) const {
  return {.info = {.name = array.view.name,
                   .dtype = array.view.dtype,
                   .shape = array.view.shape,
                   .digest = digest_of_leaves(array.leaves, array.view.bytes.size()),
                   .stored_bytes = 0,
                   .storage = array.storage},
          .offset = 0,
          .pieces = array.pieces};
}

Index PieceEncoder::finish() const {
  Index index;
  index.metadata = indexed(arrays_.front());
  for (std::size_t i = 1; i < arrays_.size(); ++i) index.arrays.push_back(indexed(arrays_[i]));
  // Only here are all sizes known, so offsets are computed last.
  index.hdf5_offset = place_pieces(index);
  return index;
}

}  // namespace holdfast::format
