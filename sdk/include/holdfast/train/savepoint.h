#pragma once

// How a callback asks for a savepoint, and what it learns about the outcome. Savepoints are written in
// the background. At most two are under way: one that is being written and one that waits for it.
//
//   context.save(context.run_directory() + "/best.h5", {.weights_only = true, .weights = Weights::averaged});
//
// Each that is under way holds a copy of the state in the memory of the primary rank's host.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/base/digest.h"
#include "holdfast/train/weights.h"

namespace holdfast {

// What happens if a savepoint is due while two are under way. The caller learns of either through
// on_savepoint().
enum class WhenStorageIsSlow {
  wait,  // training pauses until one of them is finished
  skip,  // this savepoint is not written
};

// How the arrays are stored in the file. Each file records it, so savepoints of one run may differ. See
// docs/format.md.
enum class SavepointCompression {
  fast,       // weights take a sixth (fp32) to a third (bf16) less space
  none,       // as in memory: faster if the disk is faster than the cores; any HDF5 library reads it
  zstd,       // the levels of zstd: slower
  automatic,  // fast or none, whichever is faster in a measurement before the first savepoint of the folder
};

// How one savepoint is written.
struct SaveOptions {
  WhenStorageIsSlow when_storage_is_slow = WhenStorageIsSlow::wait;  // see WhenStorageIsSlow
  SavepointCompression compression = SavepointCompression::fast;     // see SavepointCompression
  int zstd_level = 1;                                                // for SavepointCompression::zstd
  int threads = 0;  // to compress and write; 0: this replica's share of the cores of the host
  // Writes parameters and buffers alone, with the model and the metrics: for load_model() and
  // Trainer::load_weights(). No run can go on from such a file.
  bool weights_only = false;
  // With weights_only: which weights. Empty: those that this fit() validates, which are the averages with
  // SwapEMAWeights. A whole savepoint has both.
  std::optional<Weights> weights{};
  // Called on the thread of the writer once the file is whole and on stable storage. An exception
  // counts as a failed write. It may take as long as a callback (RecoveryOptions::callback_timeout);
  // the next savepoint waits for it.
  std::function<void()> when_durable{};
};

// One event in the life of a savepoint, for Callback::on_savepoint(). Members without a remark apply to
// every kind.
struct SavepointEvent {
  // A savepoint is skipped; or it may have waited, is started, makes progress, and becomes durable or
  // fails.
  enum class Kind {
    started,             // writing begins
    progress,            // the newest report since the last call
    durable,             // whole and on stable storage
    skipped,             // not written
    waited,              // training paused before it could be queued
    failed,              // training continues; if it is the last one of a fit(), fit() fails with this sentence
    compression_chosen,  // by SavepointCompression::automatic
  };

  // What happened, and to which savepoint:
  Kind kind = Kind::started;
  std::string path;       // of the savepoint; compression_chosen: of the record of the choice
  std::int64_t step = 0;  // updates in the state of the savepoint
  // How far it is; the kinds that set a member are named:
  std::uint64_t done_bytes = 0;   // progress, durable: of total_bytes
  std::uint64_t total_bytes = 0;  // progress, durable: of the state, uncompressed
  std::uint64_t file_bytes = 0;   // durable
  double ratio = 0;               // durable: total_bytes to file_bytes
  double seconds = 0;             // durable: since started; waited: how long training paused
  Digest digest{};                // durable: of the file
  // A reason, for people:
  std::string why{};  // skipped, failed, compression_chosen: a sentence
};

// The name of the enumerator, as written above.
std::string_view to_string(SavepointEvent::Kind kind);
// "fast", "none", "zstd" or "automatic".
std::string_view to_string(SavepointCompression compression);

}  // namespace holdfast
