#pragma once

// Outputs of a model as the inputs of another one, computed once. In transfer learning the frozen part gives the same
// outputs in each epoch; kept, they leave only the head to compute:
//
//   const Model base = load_model("first.h5").output_of("features");
//   const Dataset features = cached_outputs(base, photos, {.file = "run/features.cache"});
//   Trainer trainer(replica, head, Adam{1e-3F}, SparseCategoricalCrossentropy{{.from_logits = true}});
//   trainer.fit(features.shuffle().batch(32), {.epochs = 50});
//
// Samples that change from epoch to epoch, as after augment(), have no outputs to keep.

#include <chrono>
#include <cstdint>
#include <string>

#include "holdfast/data/dataset.h"
#include "holdfast/nn/model.h"

namespace holdfast {

// Where the outputs are kept.
struct CachedOutputsOptions {
  // Empty: the memory of this process. Otherwise a file that the replicas of a host share: it appears when it is whole,
  // and has a digest for each sample, which is checked whenever the sample is loaded.
  std::string file{};
  // How many samples are computed together. Kernels may be chosen by that number, so other blocks give other bits.
  std::int64_t block = 64;
  int threads = 0;  // that compute blocks; no bit depends on it. 0: as many as OpenMP allows
  // How long a process waits for another one that computes outputs in the folder of `file`. After that it computes
  // them, too. A process that waits makes no progress: let it be less than RecoveryOptions::start_timeout.
  std::chrono::milliseconds wait = std::chrono::seconds(60);
};

// The samples of `data`, in its order, with the outputs of `part` as inputs: one f32 array without a name, or several,
// named after their layers. Targets and sample weights stay.
//
// All is computed before this returns, on the CPU, in inference mode. Block b begins with sample b * block, whatever
// the shards and batches of a training are. Where the last block is short, its last sample is repeated until it is
// full. So the bits depend on the model, the data, `block`, and the arithmetic of the machine, which a file records. A
// cache that was lost, or whose writer was killed, is computed again with the same bits. They may differ in the last
// digits from those of a training in which `part` computes each step.
//
// `part` is copied with its weights. A replica that computes may take ten times RecoveryOptions::start_timeout.
//
// Throws Error{invalid_argument}
//   - if `part` has no weights, or takes other arrays than `data` has;
//   - after shuffle(), mixup(), batch(), prefetch() and maps that may draw, as all functions of an application: put
//     these after it;
//   - for a block or threads out of range, and for a sample that `part` cannot take, such as an id out of range.
// Throws Error{out_of_memory} without memory for all outputs. For the file it throws what Dataset::cache(path) does:
// Error{incompatible} for other data or other arithmetic, and Error{invalid_file} for a damaged one.
Dataset cached_outputs(const Model& part, const Dataset& data, const CachedOutputsOptions& options = {});

}  // namespace holdfast
