#pragma once

// What collectives need of one device: a queue of their own beside the one that training computes in. The seam below
// which is CUDA; everything above it is tested without a GPU.
//
// For one thread, except make_current(). What fails on the device is thrown as Error, at the latest by
// has_passed_mark().

#include <cstddef>
#include <span>
#include <string>

#include "collective/shard_tree.h"

namespace holdfast {

// sum[i] = the leaves' [i] added as the program says.
struct OrderedSum {
  std::span<const SumInstruction> program;  // sum_program(), or of the same kind
  std::span<const float* const> leaves;     // device memory
  std::size_t floats = 0;                   // at least 1
  float* sum = nullptr;                     // may be a leaf; null: the sums are only looked at
};

class CollectiveStream {
 public:
  virtual ~CollectiveStream() = default;

  virtual std::string device() const = 0;  // "cuda:0"
  // The device's place in this host, the same for every process: "0000:3b:00.0".
  virtual std::string identity() const = 0;
  virtual void* handle() = 0;  // as NCCL takes it

  // NCCL's calls of this thread concern this device from here on. Any thread.
  virtual void make_current() = 0;

  // What is queued from here on begins when everything that training has queued so far is done.
  virtual void follow_training() = 0;
  // The same in two: mark number `mark` stands behind what training has queued so far; what is queued here from
  // follow_training(mark) on begins behind it. Numbers from 0, used again and again.
  virtual void mark_training(std::size_t mark) = 0;
  virtual void follow_training(std::size_t mark) = 0;
  // Whether training has done everything that the stream follows so far; also true for a device that was given up. Does
  // not wait.
  virtual bool has_training_passed() = 0;

  // Forgets what sums were not finite.
  virtual void begin_sums() = 0;
  // Queued, and exactly the operations of add_in_order() of the memory communicator: the same bits.
  virtual void add_in_order(const OrderedSum& sum) = 0;

  // Behind all that is queued so far.
  virtual void mark() = 0;
  // Does not wait.
  virtual bool has_passed_mark() = 0;
  // Once the mark is passed: whether all sums since begin_sums() are finite.
  virtual bool were_finite() const = 0;

  // What is queued may never end: nobody in this process waits for the device any more.
  virtual void give_up() noexcept = 0;
};

}  // namespace holdfast
