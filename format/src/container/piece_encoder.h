#pragma once

// Cuts arrays into pieces and turns pieces into the bytes that are stored, with their digests. The unit of
// work is a run: consecutive pieces that are written at once. Runs are independent, so any number of
// threads, or of processes that hold the same state, make the same file.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "container/chunk.h"
#include "container/chunk_codec.h"
#include "container/index.h"
#include "holdfast/format/array_info.h"

namespace holdfast::format {

// Consecutive pieces: of one array, or of several small ones.
struct Run {
  std::size_t first_piece;
  std::size_t piece_count;
};

class PieceEncoder {
 public:
  // `metadata` and `arrays`, sorted by name and checked, must outlive it.
  PieceEncoder(const ArrayView& metadata, std::span<const ArrayView> arrays, Compression compression);

  const std::vector<Run>& runs() const { return runs_; }
  // The uncompressed bytes of all arrays.
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t bytes_of(const Run& run) const;

  // The buffers of one thread that encodes.
  struct Workspace {
    explicit Workspace(const WriteOptions& options);
    ChunkEncoder chunk_encoder;
    std::vector<std::byte> bytes;
  };
  // Returns the run's bytes in the file. The bytes up to the next multiple of kAlignment are zero; a new
  // file has zeros where nothing was written. The result is valid until the workspace is used again.
  // Different runs may be encoded in different threads.
  std::span<const std::byte> encode(const Run& run, Workspace& workspace);

  // The result of a run, for the process that puts the index together from the runs of all processes.
  struct RunResult {
    std::vector<Piece> pieces;
    std::vector<Digest> leaves;
  };
  RunResult result(const Run& run) const;
  // Whether `result` has as many pieces and leaves as the run.
  bool fits(const Run& run, const RunResult& result) const;
  void set_result(const Run& run, const RunResult& result);

  // The index, without the HDF5 part. Every run was encoded or its result was set before.
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
  std::span<const PlannedPiece> pieces_of(const Run& run) const;
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
