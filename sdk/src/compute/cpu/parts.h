#pragma once

// Divides work of our own loops among the threads of a back end. The parts are for speed alone: the loops compute each
// item, and add up each sum, in the same way wherever parts begin and end. So bits do not depend on the threads.

#include <algorithm>
#include <cstdint>

#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {

struct DividedWork {
  std::int64_t count = 0;        // items
  std::int64_t floats_each = 1;  // that an item reads or writes
};

// Calls run(context, part) for each part from 0 to parts - 1, on a team of as many threads. Returns when all are done.
// `run` must not throw.
void run_parts(int parts, void (*run)(const void* context, int part), const void* context);

// Calls run(begin, end) for ranges that cover the items, on up to `threads` threads. Work too small to be worth a
// second thread is done by the caller.
template <class Run>
void for_each_part(int threads, DividedWork work, const Run& run) {
  // Starting a team takes microseconds, in which one thread works through about so many floats.
  constexpr std::int64_t kFloatsOfPart = 1 << 15;
  const std::int64_t worthwhile = work.count * work.floats_each / kFloatsOfPart;
  const int parts = static_cast<int>(std::min({std::int64_t{threads}, worthwhile, work.count}));
  if (parts <= 1) {
    if (work.count > 0) run(std::int64_t{0}, work.count);
    return;
  }
  const auto run_part = [&](int part) { run(work.count * part / parts, work.count * (part + 1) / parts); };
  run_parts(
      parts, [](const void* context, int part) { (*static_cast<const decltype(run_part)*>(context))(part); },
      &run_part);
}

// Calls run(range) for ranges that cover the columns of [rows, columns].
template <class Run>
void for_each_column_part(int threads, std::int64_t rows, std::int64_t columns, const Run& run) {
  // The last group takes what is left. Few columns are one group.
  const std::int64_t groups = std::max(columns / kColumnsOfPart, std::int64_t{1});
  for_each_part(
      threads, {.count = groups, .floats_each = rows * kColumnsOfPart}, [&](std::int64_t begin, std::int64_t end) {
        run(ColumnRange{.begin = begin * kColumnsOfPart, .end = end == groups ? columns : end * kColumnsOfPart});
      });
}

}  // namespace holdfast::compute
