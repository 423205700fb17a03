#pragma once

// Where the arrays of a training lie: in the memory of the host or in that of a device. The host cannot
// follow pointers into a device's memory; it asks the memory space to copy, add and digest arrays
// there. Applications meet this interface only when they write a Trainable for a device.
//
// A memory space works in order: each call takes effect after all calls before it, from any caller. A
// call that hands a result to the host waits for it, at most as long as set_time_limit() allows, and
// then throws Error{deadline_exceeded}. Such a call also throws what went wrong on the device earlier.
// Use a memory space from one thread at a time; only the host's may be used from several.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "holdfast/base/digest.h"

namespace holdfast {

// The values that some arrays had at one moment, on their way to the host. The arrays may change meanwhile:
//
//   const auto held = memory.hold(arrays);
//   held->digest();              waits; may also come after finish_copy()
//   held->begin_copy(to);        before anything changes the arrays
//   ...                          the arrays change
//   held->finish_copy();         on any thread; `to` holds the values of that moment
//
// The memory space must outlive this object. A caller that no longer needs the values may leave out the
// remaining calls.
class HeldArrays {
 public:
  virtual ~HeldArrays() = default;

  // The digest() of the bytes of all arrays, concatenated.
  virtual Digest digest() = 0;

  // `to` has one span for each array, of the same size. The spans must stay in place until finish_copy() or the end of
  // this object. If the memory space had no room to hold the values, this call blocks until they have arrived.
  virtual void begin_copy(std::span<const std::span<float>> to) = 0;
  // Blocks until the copy is complete. Throws what went wrong on the device, and Error{deadline_exceeded} if it takes
  // longer than the time limit of the memory space plus the time that so many bytes may need.
  virtual void finish_copy() = 0;

  // Why begin_copy() has to block, as a sentence; empty if it does not.
  virtual std::string obstacle() const { return {}; }
};

// Sends rows of a host array to a memory space ahead of the computation that uses them:
//
//   feed->begin(rows);           the transfer starts
//   ...                          earlier work in the memory space goes on meanwhile
//   feed->take();                work that is queued from here on sees these rows
//
// At most two transfers may be begun and not yet taken. The memory space and the array must outlive the feed.
class RowFeed {
 public:
  virtual ~RowFeed() = default;

  // Starts the transfer of the rows with these numbers. `rows` may change after the return.
  virtual void begin(std::span<const std::int64_t> rows) = 0;
  // The rows of the oldest transfer not yet taken. They are valid until the next take() returns.
  virtual std::span<const float> take() = 0;
};

// One memory and the order of work in it. All spans below lie in this memory unless they are named as
// the host's. A call may return before its work is done, unless it says that it blocks.
class MemorySpace {
 public:
  virtual ~MemorySpace() = default;

  // "cpu" or "cuda:0", with CUDA's number of the device.
  virtual std::string device() const = 0;
  bool is_host() const { return device() == "cpu"; }  // whether the program can read and write it directly

  // Zeros, aligned to at least 64 bytes and freed with the last owner. The memory space must outlive
  // them. Throws Error{out_of_memory} that says how much memory there is and how much is missing.
  virtual std::shared_ptr<float[]> allocate(std::size_t floats) = 0;

  // The two spans of a copy have the same size. Blocks until `to` is complete.
  virtual void copy_to_host(std::span<const float> from, std::span<float> to) = 0;
  // `from` may change after the return.
  virtual void copy_from_host(std::span<const float> from, std::span<float> to) = 0;
  // Both spans lie in this memory.
  virtual void copy(std::span<const float> from, std::span<float> to) = 0;
  // Copies rows: row i of `to` becomes row rows[i] of `from`. The length of a row follows from the size
  // of `to`. `rows` lies in the host's memory and may change after the return.
  virtual void gather(std::span<const float> from, std::span<const std::int64_t> rows, std::span<float> to) = 0;
  // Computes sum[i] += summand[i] for all elements.
  virtual void add(std::span<const float> summand, std::span<float> sum) = 0;
  // True if no element is NaN or infinite. Blocks.
  virtual bool is_finite(std::span<const float> array) = 0;
  // Sets all elements to zero.
  virtual void fill_zero(std::span<float> array) = 0;
  // The digest() of the bytes of all arrays, concatenated. Blocks.
  virtual Digest digest_of(std::span<const std::span<const float>> arrays) = 0;

  // Takes hold of the values that the arrays have once all earlier calls are done. With room for a
  // second copy, this delays the work of the memory space no longer than that copy takes. There is one
  // at a time: this call waits for the copy of the one before.
  virtual std::unique_ptr<HeldArrays> hold(std::span<const std::span<const float>> arrays) = 0;

  // A feed of rows of `from`, a host array that is pinned. Null if it is not pinned, or if copy_from_host() is as fast.
  virtual std::unique_ptr<RowFeed> feed(std::span<const float> from, std::size_t row_floats) = 0;

  // Blocks until all work that was asked for is done.
  virtual void wait() = 0;
  // The longest time that a call may wait for the device.
  virtual void set_time_limit(std::chrono::milliseconds limit) = 0;

  // Pins host memory that is copied to and from this space often, which may make the copies faster.
  // Call unpin() before the memory is freed. Does nothing where pinning cannot help.
  virtual void pin(std::span<std::byte> memory) = 0;
  // Ends what pin() began for the same memory.
  virtual void unpin(std::span<std::byte> memory) = 0;

 protected:
  // The length of a row for gather(), in floats; 0 if there are no rows. Asserts that `from` has every row.
  static std::size_t gathered_row_floats(std::span<const float> from, std::span<const std::int64_t> rows,
                                         std::span<const float> to);
};

// The memory of the host, which lives as long as the program. Any thread may use it.
MemorySpace& host_memory();

}  // namespace holdfast
