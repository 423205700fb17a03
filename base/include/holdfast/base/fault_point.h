#pragma once

// The points of a run at which tests inject faults, and the numbers that a fault may change. Training announces the
// points that it reaches; recovery decides whether a fault strikes there. Recovery's headers call these types
// recovery::FaultPhase and recovery::CorruptionTarget, as fault specifications do ("phase=", "target="):
//
//   rank=1,step=120,phase=before-update,fault=kill
//
// Specifications write - for _. Steps count from 0. In `load`, and from `snapshot` to `pruning`, the step is the number
// of updates in the state, and rank 0 alone gets there. Points at which a process is in no step have none: `start`,
// `rendezvous`, `broadcast` and `shutdown`. All kinds of faults: docs/faults.md.

namespace holdfast {

// Training announces most of these points. The file system of savepoints announces `writing`, `before_rename`,
// `after_rename` and `pruning`. supervise() announces `shutdown`.
enum class FaultPoint {
  start,                   // the process has joined the run and builds its model; it is part of no generation yet
  load,                    // a savepoint or a snapshot is about to be restored
  data,                    // before the batch of the step is taken
  forward,                 // before the shards of the step are computed; specifications may say "compute"
  backward,                // after a shard was computed, before its sums count
  reduce,                  // before this rank waits for the sums of its peers
  before_update,           // the sums of all ranks are there, the state is the old one; specifications may say "update"
  after_update,            // the state is the new one
  callback,                // before the callbacks of the step
  snapshot,                // a snapshot is about to be written to memory
  writing,                 // the first bytes of a savepoint are about to be written
  before_rename,           // all bytes of a savepoint are written, none is durable; specifications may say "save"
  after_rename,            // a savepoint has its name, which is not durable yet
  pruning,                 // an older savepoint is about to be deleted
  rendezvous,              // before the process waits to become part of the next generation
  broadcast,               // the state is being sent to replicas that lack it, and a part has arrived
  shutdown,                // training is over, and the watchdog does not know it yet
  compute = forward,       // another name for it
  update = before_update,  // another name for it
  save = before_rename,    // another name for it
};

// What a fault of kind `nan` or `flip` changes one float of. A loss is changed in `backward`, and a gradient there or
// in `before_update`. A weight or a slot of the optimizer is changed in other points of a step: docs/faults.md has the
// list.
enum class FaultTarget { loss, gradient, weight, slot };

}  // namespace holdfast
