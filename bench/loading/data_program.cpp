// The work of loading samples, timed for bench/data: each kind prints one line of JSON with the samples, the seconds
// and the sum of all values that came out, by which bench/data sees that peers did the same.
//
//   data_program --work jpeg --data FOLDER --threads T [--epochs N]   decode, cut out the middle 224 x 224
//   data_program --work augment --threads T                           pictures in memory: shift and flip
//   data_program --work map --threads T                               a function of each sample of 784 numbers
//   data_program --work gather --floats N                             copies shuffled samples, next to memcpy
//   data_program --work step [--depth N]                              steps of 1 ms and one loading thread, which
//                                                                     loads N batches ahead of them
//   data_program --work cache --data FILE                             reads a cache file, next to read(); cold
//
// It includes private headers: only fit() and predict() iterate over batches in programs of users.

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "data/batches/batch_loader.h"
#include "holdfast/holdfast.h"

namespace {

using namespace holdfast;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Work {
  std::string kind;
  std::string data;
  int threads = 1;
  std::int64_t epochs = 1;
  std::int64_t floats = 784;
  int depth = 16;  // batches that are loaded ahead of a step
};

// ---- Data

// Values that a peer makes alike: (7 i + 13 j) mod 256, over 255.
Tensor patterned(Shape shape) {
  Tensor tensor{std::move(shape)};
  const std::int64_t samples = tensor.shape()[0];
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::span<float> row = tensor.sample(i);
    for (std::size_t j = 0; j < row.size(); ++j) {
      row[j] = static_cast<float>((7 * static_cast<std::size_t>(i) + 13 * j) % 256) / 255.0F;
    }
  }
  return tensor;
}

Dataset in_memory(Shape shape) {
  const std::int64_t samples = shape[0];
  return from_tensors(patterned(std::move(shape)), Tensor{Shape{samples}});
}

Dataset ahead(const Dataset& batches, int threads) {
  return threads == 0 ? batches : batches.prefetch(2, {.threads = threads});
}

Dataset data_of(const Work& work) {
  if (work.kind == "jpeg") {
    const Dataset pictures = read_pictures(work.data, {.height = 375, .width = 500});
    return ahead(pictures.map(center_crop(224, 224)).batch(32), work.threads);
  }
  if (work.kind == "augment") {
    const Dataset pictures = in_memory(Shape{8192, 32, 32, 3}).map(random_crop(32, 32, {.padding = 4}));
    return ahead(pictures.map(augment({.flip = Flip::horizontal})).batch(64), work.threads);
  }
  const auto twice_less_one = [](Sample sample, Random&) {
    for (float& value : sample.features) value = value * 2.0F - 1.0F;
  };
  return ahead(in_memory(Shape{60'000, 784}).map(twice_less_one, "twice, less one").batch(64), work.threads);
}

// ---- Measured

// One pass before the clock starts, as the first decodes with cold caches.
Json loaded(const Work& work) {
  const Dataset data = data_of(work);
  std::int64_t samples = 0;
  double sum = 0;
  Clock::time_point begin{};
  BatchLoader loader(data, 1, 1, 0, 1, 0, 0, work.epochs + 1);
  while (const std::optional<Batch> batch = loader.next()) {
    if (batch->epoch == 0) {
      begin = Clock::now();
      // The sum is that of the first pass, so that the clock does not count it.
      for (const float value : batch->shards[0].features) sum += value;
      continue;
    }
    samples += batch->samples;
  }
  return {{"samples", samples}, {"seconds", seconds_since(begin)}, {"sum", sum}};
}

double copied_bytes_per_second(std::vector<float>& to, const std::vector<float>& from, std::size_t chunk) {
  const Clock::time_point begin = Clock::now();
  for (std::size_t at = 0; at + chunk <= from.size(); at += chunk) {
    std::memcpy(to.data() + at % to.size(), from.data() + at, chunk * sizeof(float));
  }
  return static_cast<double>(from.size() * sizeof(float)) / seconds_since(begin);
}

// Gathers 512 MiB in batches of 64 shuffled samples, in this thread, in turns with memcpy of as many bytes into a
// buffer of one batch.
Json gathered(const Work& work) {
  const std::int64_t samples = (std::int64_t{128} << 20) / work.floats / 64 * 64;
  const Dataset data = in_memory(Shape{samples, work.floats}).shuffle().batch(64);
  const std::vector<float> from(static_cast<std::size_t>(samples * work.floats), 1.0F);
  std::vector<float> to(static_cast<std::size_t>(64 * work.floats));
  std::vector<double> ratios;
  for (std::int64_t epoch = 0; epoch < 7; ++epoch) {
    BatchLoader loader(data, 1, 1, 0, 1, epoch, 0, epoch + 1);
    loader.next();
    const Clock::time_point begin = Clock::now();
    std::int64_t bytes = 0;
    while (const std::optional<Batch> batch = loader.next()) {
      bytes += batch->samples * work.floats * std::int64_t{sizeof(float)};
    }
    const double rate = static_cast<double>(bytes) / seconds_since(begin);
    ratios.push_back(rate / copied_bytes_per_second(to, from, to.size()));
  }
  std::nth_element(ratios.begin(), ratios.begin() + 3, ratios.end());
  return {{"bytes of a sample", work.floats * std::int64_t{sizeof(float)}}, {"of memcpy", ratios[3]}};
}

// A step computes for 1 ms; what share of the time does it compute? For ten seconds, since the share of one second
// differed from run to run.
Json busy_steps(const Work& work) {
  const Dataset data = in_memory(Shape{10'240, 28, 28, 1})
                           .map(augment({.flip = Flip::horizontal, .shift_rows = 0.1F, .shift_columns = 0.1F}))
                           .shuffle()
                           .batch(64)
                           .prefetch(work.depth);
  BatchLoader loader(data, 1, 1, 0, 1, 0, 0, 64);
  loader.next();
  double busy = 0;
  std::int64_t steps = 0;
  const Clock::time_point begin = Clock::now();
  while (loader.next()) {
    const Clock::time_point step = Clock::now();
    while (seconds_since(step) < 1e-3) {
    }
    busy += seconds_since(step);
    ++steps;
  }
  return {{"steps", steps}, {"busy", busy / seconds_since(begin)}};
}

// Pages of a file leave the cache of the system, as far as it follows advice.
void forget(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ::fdatasync(file);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

double plainly_read(const std::string& path) {
  forget(path);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::vector<char> buffer(std::size_t{1} << 20);
  const Clock::time_point begin = Clock::now();
  std::int64_t bytes = 0;
  for (ssize_t got = 1; got > 0; bytes += got) got = ::read(file, buffer.data(), buffer.size());
  const double seconds = seconds_since(begin);
  ::close(file);
  return static_cast<double>(bytes) / seconds;
}

double read_by_loader(const Dataset& data, const std::string& path, std::int64_t floats) {
  forget(path);
  const Clock::time_point begin = Clock::now();
  BatchLoader loader(data, 1, 1, 0, 1, 0, 0, 1);
  std::int64_t bytes = 0;
  while (const std::optional<Batch> batch = loader.next()) {
    bytes += batch->samples * floats * std::int64_t{sizeof(float)};
  }
  return static_cast<double>(bytes) / seconds_since(begin);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Samples of 150 KB, 1 GiB of them; both reads are of files that are not in memory, in turns, and each is the first
// of every second turn. Rates of single reads differ by half where others use the same disk, so there are many. Nothing
// large is allocated in between: it would take the pages that the plain read has just left, and the other read would
// have to get new ones from the system.
Json read_from_cache(const Work& work) {
  constexpr int kTurns = 21;
  const std::int64_t floats = 37'632;
  const std::int64_t samples = (std::int64_t{256} << 20) / floats;
  const Dataset data =
      in_memory(Shape{samples, floats}).cache(work.data).batch(32).prefetch(2, {.threads = work.threads});
  std::vector<double> plain, ours, ratios;
  for (int turn = 0; turn < kTurns; ++turn) {
    if (turn % 2 == 0) plain.push_back(plainly_read(work.data));
    ours.push_back(read_by_loader(data, work.data, floats));
    if (turn % 2 == 1) plain.push_back(plainly_read(work.data));
    ratios.push_back(ours.back() / plain.back());
  }
  return {{"of a plain read", median(ratios)},
          {"of medians", median(ours) / median(plain)},
          {"plain megabytes per second", median(plain) / 1e6}};
}

Json measured(const Work& work) {
  if (work.kind == "gather") return gathered(work);
  if (work.kind == "step") return busy_steps(work);
  if (work.kind == "cache") return read_from_cache(work);
  return loaded(work);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The work of loading samples, timed.");
  Work work;
  app.add_option("--work", work.kind)
      ->required()
      ->check(CLI::IsMember({"jpeg", "augment", "map", "gather", "step", "cache"}));
  app.add_option("--data", work.data);
  app.add_option("--threads", work.threads);
  app.add_option("--epochs", work.epochs);
  app.add_option("--floats", work.floats);
  app.add_option("--depth", work.depth);
  CLI11_PARSE(app, argc, argv);
  std::cout << measured(work).dump() << std::endl;
  return 0;
}
