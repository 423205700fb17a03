#pragma once

// The options of ModelCheckpoint (model_checkpoint.h).

#include <cstdint>
#include <optional>
#include <string>

#include "holdfast/base/best.h"
#include "holdfast/train/savepoint.h"

namespace holdfast {

// When savepoints are written, and which ones stay. A savepoint stays if keep_last, keep_best or
// keep_every_steps asks for it.
struct ModelCheckpointOptions {
  std::string directory{};        // default: the run directory
  std::int64_t every_steps = 0;   // write one each time so many steps are done; 0: never
  std::int64_t every_epochs = 1;  // write one each time so many epochs are done; 0: never
  std::int64_t keep_last = 3;     // keep so many of the newest; 0 keeps all
  // A name in the logs of an epoch, such as "val_loss". An epoch among the best is always saved. If the
  // name is missing, fit() throws Error{invalid_argument} with the names that exist.
  std::string best_by{};
  // Which values of `best_by` are better. By default, what the metric says of itself: the lowest loss, the highest
  // accuracy. fit() throws Error{invalid_argument} for a metric that says nothing: name one of the two then.
  Best best = Best::automatic;
  std::int64_t keep_best = 1;         // keep so many of the best by `best_by`; of equal ones the older
  std::int64_t keep_every_steps = 0;  // keep for good each one whose step is a multiple; 0: none
  // Limits the total size of the savepoints that stay. The oldest go first, but never the newest, the
  // best or one that is kept for good. 0: no limit.
  std::uint64_t max_bytes = 0;

  // Names files as Keras does, from {epoch} and {batch} (from 1), {step}, and names in the logs, each with a
  // format of numbers. A file is written when every_steps or every_epochs says so, or an epoch is among the
  // best by best_by; with every_epochs = 0 only then. fit() adds none at its end. All files stay, and one of
  // the same name is replaced: what keeps or deletes savepoints does not apply. After a failure, repeated
  // epochs write the same files again. Empty: "savepoint-<step>.h5".
  std::string file_name{};
  // Writes parameters and buffers alone, for load_model() and Trainer::load_weights(). Needs a directory of
  // its own or a file_name, since no run can go on from such a file. In a fit() with SwapEMAWeights these are the
  // moving averages, of which the validation is.
  bool weights_only = false;
  // An epoch is among the best only if `best_by` is also better than this.
  std::optional<double> initial_value_threshold{};

  // `skip` applies to savepoints for which the next one makes up. The last one of a fit(), one among
  // the best and one that is kept for good are always waited for.
  WhenStorageIsSlow when_storage_is_slow = WhenStorageIsSlow::wait;
  // With `automatic`, equal states may make different files on different machines; compare digests of
  // the state, not of files.
  SavepointCompression compression = SavepointCompression::fast;
  int zstd_level = 1;  // for SavepointCompression::zstd
  int threads = 0;     // to compress, write and read back; 0: this replica's share of the cores of the host
  // Whether each file is logged once it is on stable storage, at level info, by the replica that has written it. The
  // journal of the run names them anyway.
  bool verbose = false;
};

}  // namespace holdfast
