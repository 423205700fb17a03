#pragma once

// What collectives need of a device: a stream of their own, next to the one that training computes in. Collectives
// that run there overlap with the rest of the backward pass.
//
// This interface separates NCCL's protocol from CUDA, so that everything above it is tested without a GPU. An object is
// for one thread, except for make_current(). A failure of the device is thrown as Error, at the latest by
// has_passed_mark(). See docs/decisions/nccl.md.

#include <cstddef>
#include <span>
#include <string>

#include "collective/shard_tree.h"

namespace holdfast {

// sum[i] = leaves[0][i] + leaves[1][i] + ..., added in the order of the program.
struct OrderedSum {
  std::span<const SumInstruction> program;  // of sum_program(), or another that pushes each leaf once
  std::span<const float* const> leaves;     // device memory
  std::size_t floats = 0;                   // at least 1
  float* sum = nullptr;                     // may be a leaf; if null, sums are only checked, not stored
};

class CollectiveStream {
 public:
  virtual ~CollectiveStream() = default;

  virtual std::string device() const = 0;  // "cuda:0"
  // The device's PCI address, which is the same in every process of this host: "0000:3b:00.0".
  virtual std::string identity() const = 0;
  virtual void* handle() = 0;  // the cudaStream_t for NCCL

  // Makes this device the current one of the calling thread, for calls of NCCL. Any thread.
  virtual void make_current() = 0;

  // Lets what is queued here from now on wait for everything that training has queued so far.
  virtual void follow_training() = 0;
  // The same in two steps. mark_training(mark) records the work that training has queued so far; follow_training(mark)
  // lets what is queued here from then on wait for that work. Marks are numbered from 0 and are used again.
  virtual void mark_training(std::size_t mark) = 0;
  virtual void follow_training(std::size_t mark) = 0;
  // Whether all work of training that this stream follows is done. Also true for a lost device. Does not wait.
  virtual bool has_training_passed() = 0;

  // Begins a new were_finite(): resets it to true.
  virtual void begin_sums() = 0;
  // Queues a sum. It has the operations of add_in_order() in ordered_add.h, and thus the same bits.
  virtual void add_in_order(const OrderedSum& sum) = 0;

  // Records the end of everything that is queued here so far.
  virtual void mark() = 0;
  // Whether everything before the last mark() is done. Does not wait.
  virtual bool has_passed_mark() = 0;
  // Whether all sums since begin_sums() are finite. Defined once the mark has passed.
  virtual bool were_finite() const = 0;

  // Declares the device lost: what is queued may never end, so no thread of this process waits for it any more.
  virtual void mark_device_lost() noexcept = 0;
};

}  // namespace holdfast
