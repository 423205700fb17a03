#pragma once

// Where the arrays of a training lie: in the host's memory, or in that of a device, where the host can follow no
// pointer but has arrays copied, added and digested.
//
// A memory space does things in order: each call acts behind all that was asked of it before, by whomever. Calls that
// give the host something wait for it, and no longer than set_time_limit() says: then they throw
// Error{deadline_exceeded}; what went wrong on the device before is thrown, too. For one thread at a time, except where
// is_host().

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "holdfast/base/digest.h"

namespace holdfast {

// Arrays as they were at one moment, on their way to the host while those that they were taken from go on changing:
//
//   const auto held = memory.hold(arrays);
//   held->digest();              waits; here, or behind finish_copy()
//   held->begin_copy(to);        before anything changes the arrays
//   ...                          the arrays change
//   held->finish_copy();         on any thread; what begin_copy() was given holds them
//
// Its memory space outlives it. Whoever is no longer interested may leave out what is left of this.
class HeldArrays {
 public:
  virtual ~HeldArrays() = default;

  // digest() of the bytes of all arrays, one behind the other.
  virtual Digest digest() = 0;

  // One span for each array, of its size, which stays where it is until finish_copy() or the end of this object. Where
  // the memory space had no room to hold the arrays in, this waits until they are there.
  virtual void begin_copy(std::span<const std::span<float>> to) = 0;
  // Throws what went wrong, and Error{deadline_exceeded} where it takes longer than the memory space's time limit and
  // what the bytes may take.
  virtual void finish_copy() = 0;

  // Why begin_copy() waits; empty where it does not.
  virtual std::string obstacle() const { return {}; }
};

// Rows of an array of the host on their way to a memory space, ahead of what is computed with them:
//
//   feed->begin(rows);           they are on their way
//   ...                          what the memory space was asked for before goes on beside that
//   feed->take();                what it is asked for from here on finds them
//
// At most two are begun and not taken. The memory space and the array outlive it.
class RowFeed {
 public:
  virtual ~RowFeed() = default;

  // `rows` may change on return.
  virtual void begin(std::span<const std::int64_t> rows) = 0;
  // Those that were begun first, of what was not taken: valid until the next take() has returned.
  virtual std::span<const float> take() = 0;
};

class MemorySpace {
 public:
  virtual ~MemorySpace() = default;

  // "cpu", "cuda:0"
  virtual std::string device() const = 0;
  bool is_host() const { return device() == "cpu"; }

  // Zeros, aligned to at least 64 bytes; given back with the last owner, which the memory space must outlive. Throws
  // Error{out_of_memory} saying how much there is and how much is missing.
  virtual std::shared_ptr<float[]> allocate(std::size_t floats) = 0;

  // Spans of one copy have one size.
  virtual void copy_to_host(std::span<const float> from, std::span<float> to) = 0;
  // `from` may change on return.
  virtual void copy_from_host(std::span<const float> from, std::span<float> to) = 0;
  virtual void copy(std::span<const float> from, std::span<float> to) = 0;
  // Row i of `to` becomes row rows[i] of `from`; rows are as long as `to` has room for. `rows` may change on return.
  virtual void gather(std::span<const float> from, std::span<const std::int64_t> rows, std::span<float> to) = 0;
  // sum[i] += summand[i]
  virtual void add(std::span<const float> summand, std::span<float> sum) = 0;
  // Whether no element is NaN or infinite.
  virtual bool is_finite(std::span<const float> array) = 0;
  virtual void fill_zero(std::span<float> array) = 0;
  // digest() of the bytes of all arrays, one behind the other.
  virtual Digest digest_of(std::span<const std::span<const float>> arrays) = 0;

  // The arrays as they are behind all that was asked for so far. A memory space that has room for a second copy needs
  // no more of its own time than that takes. One at a time: waits for the copy of the one before.
  virtual std::unique_ptr<HeldArrays> hold(std::span<const std::span<const float>> arrays) = 0;

  // Of an array that is pinned. Null where it is not, and where copy_from_host() is as good.
  virtual std::unique_ptr<RowFeed> feed(std::span<const float> from, std::size_t row_floats) = 0;

  // Until everything is done that was asked for.
  virtual void wait() = 0;
  virtual void set_time_limit(std::chrono::milliseconds limit) = 0;

  // Host memory that copies to and from this space will use often: they may become faster. Until unpin(), which must be
  // called before the memory is given back. Does nothing where it cannot help.
  virtual void pin(std::span<std::byte> memory) = 0;
  virtual void unpin(std::span<std::byte> memory) = 0;

 protected:
  // Floats of a row that gather() takes; 0 where there is none. Asserts that `from` has all rows.
  static std::size_t gathered_row_floats(std::span<const float> from, std::span<const std::int64_t> rows,
                                         std::span<const float> to);
};

// Any thread.
MemorySpace& host_memory();

}  // namespace holdfast
