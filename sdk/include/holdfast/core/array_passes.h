#pragma once

// A pass over long arrays that several threads share. An update of all parameters is one:
//
//   passes(parameters.size(), 1, [&](std::size_t begin, std::size_t end) {
//     for (std::size_t i = begin; i < end; ++i) parameters[i] -= rate * gradients[i];
//   });
//
// Where ranges begin and end depends on the number of threads. So bits stay the same on every machine only if each item
// is computed on its own.

#include <cstddef>
#include <functional>

namespace holdfast {

// Works on the items [begin, end). It may be called on several threads at once.
using PassOfRange = std::function<void(std::size_t begin, std::size_t end)>;

// Calls pass(begin, end) for ranges that cover the items [0, items), on several threads at once, and returns when all
// are done. Each item reads or writes `floats_each` floats: work that is too small to share is done by the calling
// thread. The first exception of a pass is rethrown when all have ended.
using ArrayPasses = std::function<void(std::size_t items, std::size_t floats_each, const PassOfRange& pass)>;

// All items on the calling thread.
inline void pass_alone(std::size_t items, std::size_t /*floats_each*/, const PassOfRange& pass) {
  if (items > 0) pass(0, items);
}

}  // namespace holdfast
