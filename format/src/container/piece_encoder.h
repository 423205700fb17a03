#pragma once

// Cuts arrays into pieces and turns pieces into the bytes that are stored, with their digests. The work is dealt in
// runs: consecutive pieces that are written at once. Runs know nothing of each other, so that any number of threads, or
// of processes that each hold a part of the state, make the same file.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "container/chunk.h"
#include "container/chunk_codec.h"
#include "container/index.h"
#include "holdfast/format/array_file.h"

namespace holdfast::format {

// Pieces of one array or of several small ones.
struct Run {
  std::size_t first_piece;
  std::size_t piece_count;
};

class PieceEncoder {
 public:
  // `metadata` and `arrays`, sorted by name and checked, must outlive it.
  PieceEncoder(const ArrayView& metadata, std::span<const ArrayView> arrays, Compression compression);

  const std::vector<Run>& runs() const { return runs_; }
  // All the arrays' bytes, uncompressed.
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t bytes_of(const Run& run) const;

  // What a thread needs to encode: not for several threads at once.
  struct Workspace {
    explicit Workspace(const WriteOptions& options);
    ChunkEncoder chunk_encoder;
    std::vector<std::byte> bytes;
  };
  // The run's bytes in the file; what follows up to the next multiple of kAlignment is zero, as it is in a new file
  // where nothing was written. Valid until the workspace is used again. Different runs may be encoded in different
  // threads.
  std::span<const std::byte> encode(const Run& run, Workspace& workspace);

  // What a run left behind, for the one that puts the index together from runs of several processes.
  struct RunResult {
    std::vector<Piece> pieces;
    std::vector<Digest> leaves;
  };
  RunResult result(const Run& run) const;
  // Whether `result` has as many pieces and leaves as the run.
  bool fits(const Run& run, const RunResult& result) const;
  void set_result(const Run& run, const RunResult& result);

  // All arrays with pieces, digests and places, once every run was encoded or its result set. Without the HDF5 part.
  Index finish() const;

 private:
  struct PlannedArray {
    ArrayView view;
    Storage storage;
    std::vector<Piece> pieces;
    std::vector<Digest> leaves;  // of the uncompressed bytes, for the array's digest
  };
  struct PlannedPiece {
    std::size_t array;
    std::size_t number;      // within the array
    std::size_t first_byte;  //
    std::size_t bytes;       // uncompressed, without padding
  };

  void plan(const ArrayView& view, Storage storage);
  void plan_runs();
  std::span<const std::byte> bytes_of(const PlannedPiece& piece) const;
  // The leaves that begin within the piece, as a range of leaf numbers.
  std::pair<std::size_t, std::size_t> leaves_of(const PlannedPiece& piece) const;
  std::span<const std::byte> encode_piece(const PlannedPiece& piece, ChunkEncoder& encoder);
  IndexedArray indexed(const PlannedArray& array) const;

  std::vector<PlannedArray> arrays_;  // the metadata first
  std::vector<PlannedPiece> pieces_;
  std::vector<Run> runs_;
  std::uint64_t bytes_ = 0;
};

}  // namespace holdfast::format
