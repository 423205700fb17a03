#pragma once

// How a savepoint is asked for, and what is told of it afterwards. Savepoints are written in the background: at most
// two are under way, one that is being written and one that waits for it.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "holdfast/base/digest.h"

namespace holdfast {

// What happens when a savepoint is due while two are under way. Either way the caller is told.
enum class WhenStorageIsSlow {
  wait,  // training stands still until there is a place
  skip,  // this savepoint is not made
};

// How the arrays lie in the file. A file says so itself, so that savepoints of one run may differ.
enum class SavepointCompression {
  fast,       // weights take a sixth (fp32) to a third (bf16) less
  none,       // as in memory: quicker on a disk that is quicker than the cores, and read by any HDF5
  zstd,       // zstd's own levels: slower
  automatic,  // fast or none, whichever a measurement before the first savepoint of the folder finds quicker
};

struct SaveOptions {
  WhenStorageIsSlow when_storage_is_slow = WhenStorageIsSlow::wait;
  SavepointCompression compression = SavepointCompression::fast;
  int zstd_level = 1;  // of SavepointCompression::zstd
  int threads = 0;     // that compress and write; 0: this replica's share of the host's cores
  // Called on the writer's thread once the file is whole and on stable storage. What it throws counts as a failed
  // write. It may take as long as a callback (SuperviseOptions::callback_timeout); the next savepoint waits for it.
  std::function<void()> when_durable{};
};

struct SavepointEvent {
  enum class Kind {
    started,             // it is being written from here on
    progress,            // the newest of several that came since the last call
    durable,             // whole and on stable storage
    skipped,             // not made
    waited,              // training stood still before it found a place
    failed,              // training goes on; of the last of a fit() its end fails with the same sentence
    compression_chosen,  // what SavepointCompression::automatic means from here on
  };

  Kind kind = Kind::started;
  std::string path;               // of the savepoint; of compression_chosen, of the record of the choice
  std::int64_t step = 0;          // that the savepoint is of
  std::uint64_t done_bytes = 0;   // progress, durable: of total_bytes
  std::uint64_t total_bytes = 0;  // progress, durable: of the state, uncompressed
  std::uint64_t file_bytes = 0;   // durable
  double ratio = 0;               // durable: total_bytes to file_bytes
  double seconds = 0;             // durable: since it was started; waited: that training stood still
  Digest digest{};                // durable: of the file
  std::string why{};              // skipped, failed, compression_chosen: a sentence
};

// The enumerator's name, as written above.
std::string_view to_string(SavepointEvent::Kind kind);
std::string_view to_string(SavepointCompression compression);

}  // namespace holdfast
