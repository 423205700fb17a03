#pragma once

// Finds the largest batch that fits in memory, before a run begins:
//
//   return supervise(argc, argv, {.replicas = 2, .shards = 4}, [&](Replica& replica) {
//     const FoundBatch found = find_batch(replica, model, Adam{}, loss, train, {.memory_bytes = 2ULL << 30});
//     Trainer trainer(replica, model, Adam{}, loss);
//     trainer.fit(train.shuffle().batch(found.batch), {.epochs = 5});
//   });
//
// The batch is part of a run's bits. So it is recorded in the run directory, and every replica and every later start
// takes the recorded one, on whatever machine.

#include <chrono>
#include <cstdint>
#include <vector>

#include "holdfast/data/dataset.h"
#include "holdfast/nn/loss.h"
#include "holdfast/nn/model.h"
#include "holdfast/optim/optimizer.h"
#include "holdfast/train/output_losses.h"
#include "holdfast/train/replica.h"

namespace holdfast {

// What a batch may take, and how it is looked for.
struct FindBatchOptions {
  // What a replica may take for training, besides what the process has taken by then. Must be given.
  std::uint64_t memory_bytes = 0;
  // The most that is looked for. A batch has no more samples than the data either.
  std::int64_t highest = 65'536;
  // The batch is a multiple of this; 0: of the number of shards, so that all have equally many samples.
  std::int64_t multiple_of = 0;
  std::int64_t accumulate = 1;  // batches of a step, as FitOptions::accumulate; all of them are in memory
  bool keeps_weights = false;   // whether a callback keeps the weights of its best epoch, such as EarlyStopping
  // For one trial in a process of its own. Let it be less than RecoveryOptions::start_timeout: a process that waits
  // for the trial makes no progress.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

// The batch that find_batch() found.
struct FoundBatch {
  std::int64_t batch = 0;           // samples
  std::uint64_t planned_bytes = 0;  // what a replica takes for it, according to the plan
  std::uint64_t tried_bytes = 0;    // the address space that the trial took at most; 0 where none was made
  bool was_recorded = false;        // by another replica, or an earlier start
};

// The largest batch whose memory stays within the limit: what training_memory() plans (training_memory.h), and 64 MiB
// for threads and libraries. Survivors compute more shards than before, so all shards of a batch are counted, and as
// many at once as this machine has cores for.
//
// The plan is then confirmed: a child process trains two steps with this batch under a limit of its address space
// (RLIMIT_AS). A batch that does not fit after all is made an eighth smaller, up to 12 times. With sanitizers, whose
// address space has no limit, the plan alone decides.
//
// `data` has no batches yet. Call it in each replica, before the first call of a Trainer. The first replica that comes
// looks; the others wait for its record for `timeout`. The run directory then has batch.json.
//
// Throws
//   - Error{invalid_argument} without a limit, for numbers below 1, and for data, losses and optimizers as Trainer
//   does;
//   - Error{out_of_memory} if not even the smallest batch fits, with the bytes that it needs;
//   - Error{deadline_exceeded} if a trial has not ended within `timeout`, or another replica's search has not;
//   - Error{incompatible} if the run has a record of another question: another model, optimizer, limit or data;
//   - Error{unsupported} on devices that are not CPUs, whose memory this does not plan.
FoundBatch find_batch(const Replica& replica, const Model& model, const Optimizer& optimizer, const Loss& loss,
                      const Dataset& data, const FindBatchOptions& options);
// The same for a model with several outputs: one loss for each, in their order.
FoundBatch find_batch(const Replica& replica, const Model& model, const Optimizer& optimizer,
                      const std::vector<LossHandle>& losses, const Dataset& data, const FindBatchOptions& options);

}  // namespace holdfast
