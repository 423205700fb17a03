#pragma once

// Samples that a program can only produce one after another: a stream, a simulation, a decoder of a file.
//
//   const auto read_next = [&](const SampleArrays& into) {
//     if (!stream.next()) return false;
//     std::ranges::copy(stream.values(), into.inputs.elements<float>("values").begin());
//     return true;
//   };
//   const Dataset data = from_generator({.inputs = {{"values", {16}}}}, read_next);
//
// from_source() needs no copy of the samples, and is for programs that can write any of them at any time.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "holdfast/core/row_layout.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// What from_generator() takes of a generator.
struct GeneratorOptions {
  std::vector<ArraySpec> inputs;        // the arrays of a sample, in the order of the model's
  std::vector<ArraySpec> targets = {};  // as inputs; empty: samples have inputs alone
  // A folder for a file of all samples. It has no name there, and goes away with the data set or the process. Empty:
  // samples stay in memory.
  std::string spill_folder = {};
  // A file that keeps all samples, so that the generator runs once, and not in each replica and at each start. It is
  // written if it is not there, through a file without a name in its folder, and appears when it is whole. It stands
  // for the generator: remove it if that changes. Instead of spill_folder. Empty: none.
  std::string file = {};
  std::int64_t max_samples = 100'000'000;          // a generator that gives more ends in an error
  std::int64_t max_bytes = std::int64_t{4} << 30;  // of all samples, in memory or in a file
};

// Writes the next sample to arrays that are 0 everywhere and returns true, or returns false if there are no more. What
// it wrote before it returned false does not count.
using Generator = std::function<bool(const SampleArrays& into)>;

// Calls `next` on this thread until it returns false, before this returns, and never again. Each sample is kept as it
// came and gets its position, so every stage works and epochs repeat. Each process of a run calls its own generator,
// and so does a run that resumes, unless there is a `file`. The description holds a digest of all samples, the same
// with and without a file: a generator that gives other samples than before ends a resume with an error, and never
// trains on them unseen.
//
// Samples in a file have a digest each, which is checked as they are read. Loading throws Error{invalid_file} for one
// that does not match, and what the file system throws.
//
// Throws Error{invalid_argument} for no inputs, an empty function, no samples, limits that are exceeded, a file and a
// spill_folder, arrays that samples cannot have, and an i64 that does not fit into 32 bits; with a file, for names of
// arrays that are not UTF-8 or hold a NUL. Throws what `next` throws as Dataset::load() does. For `file` it throws what
// Dataset::cache(path) does.
Dataset from_generator(GeneratorOptions options, const Generator& next);

}  // namespace holdfast
