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

struct CachedOutputsOptions {
  // Empty: the memory of this process, 4 bytes for each word of a sample's outputs and targets. Otherwise a file that
  // the replicas of a host share. It appears under its name when it is whole, and has a digest for each sample, which
  // is checked whenever the sample is loaded.
  std::string file{};
  // How many samples are computed together. Kernels may be chosen by that number, so it is part of the description of
  // the data: other blocks give other bits.
  std::int64_t block = 64;
  // Threads that compute blocks, each with kernels of one thread; no bit depends on their number. 0: as many as OpenMP
  // allows.
  int threads = 0;
  // How long a process waits for another one that computes outputs in the folder of `file`. After that it computes
  // them, too, and the files are equal. A process that waits makes no progress, so let it be less than
  // SuperviseOptions::start_timeout.
  std::chrono::milliseconds wait = std::chrono::seconds(60);
};

// The samples of `data`, in its order, with the outputs of `part` as inputs. Targets and sample weights stay. With one
// output, samples have one f32 array without a name; with several, an array for each, named after its layer.
//
// Everything is computed before this returns, on the CPU, in inference mode: a Dropout of `part` does nothing. Block b
// is of the samples from b * block on, whatever the shards and batches of a training are. Where the last block is
// short, its last sample is repeated until it is full. So the bits depend on the model, the data, `block`, and the
// arithmetic of the machine, which a file records. A cache that was lost, or whose writer was killed, is computed again
// with the same bits. They may differ in the last digits from those of a training in which `part` computes each step.
//
// `part` is copied with its weights. In a supervised run this is part of the start: a process that computes may take
// ten times SuperviseOptions::start_timeout without progress. Replicas with a file compute once; those without one
// compute each for itself.
//
// Throws Error{invalid_argument}
//   - if `part` has no weights, or takes other arrays than `data` has;
//   - after shuffle(), mixup() and maps that may draw, which includes all map() functions of an application: put these
//     after it; and after batch() and prefetch();
//   - for a block or threads out of range, and for a sample that `part` cannot take, such as an id out of range.
// Throws Error{out_of_memory} without memory for all outputs. For the file it throws what Dataset::cache(path) does:
// Error{incompatible} for one that was made of other data, or by other arithmetic, and Error{invalid_file} for one that
// is damaged.
Dataset cached_outputs(const Model& part, const Dataset& data, const CachedOutputsOptions& options = {});

}  // namespace holdfast
