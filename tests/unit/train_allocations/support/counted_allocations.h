#pragma once

// Counts calls of operator new in the whole program, whatever thread makes them. Calls that oneDNN makes count apart: a
// call is oneDNN's while one of its functions runs that a step calls. The program must link counted_allocations.cpp,
// which replaces operator new and stands before those functions.

#include <cstdint>
#include <string>

namespace holdfast {

struct AllocationCounts {
  std::int64_t own = 0;
  std::int64_t onednn = 0;
};

// Counts from its construction until stop(). One at a time.
class CountedAllocations {
 public:
  CountedAllocations();
  ~CountedAllocations() { stop(); }
  CountedAllocations(const CountedAllocations&) = delete;
  CountedAllocations& operator=(const CountedAllocations&) = delete;

  AllocationCounts stop();
  // What made the first ones of our own: lists of callers, for the message of a failed test.
  static std::string callers();
};

}  // namespace holdfast
