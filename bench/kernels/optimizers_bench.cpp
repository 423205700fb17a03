// The rate of each optimizer's update on one thread, counted in the bytes that it must move: parameters are read and
// written, gradients are read, and each slot is read and written, once. Rules that need norms must read some of them
// again; these bytes count, too. The optimizers take turns, so that a busy moment of the machine hits all alike, and
// the shortest time of each counts. It is that of the processor, without the time in which it did something else.
//
//   bench_optimizers [FLOATS] [ROUNDS]      floats of each array, 2^24 by default: far beyond a cache

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/holdfast.h"

namespace {

using namespace holdfast;

struct Measured {
  std::string name;
  std::shared_ptr<const Optimizer> optimizer;
  int further_bytes = 0;  // of an element, in further passes
  double seconds = 1e9;   // of the fastest update

  int bytes() const { return 12 + 8 * static_cast<int>(optimizer->slot_names().size()) + further_bytes; }
  double rate(double floats) const { return floats * bytes() / seconds * 1e-9; }
};

template <class Rule, class Options>
Measured measured(std::string name, const Options& options, int further_bytes = 0) {
  return {.name = std::move(name), .optimizer = std::make_shared<Rule>(options), .further_bytes = further_bytes};
}

std::vector<Measured> all_optimizers() {
  // The step of LAMB follows two norms: parameters and slots are read once more before parameters are written.
  constexpr int kLambAgain = 4 * 3;
  // Adafactor reads parameters for their size, and factors and gradients twice after the factors are new.
  constexpr int kAdafactorAgain = 4 + 2 * 12;
  return {measured<Adam>("Adam", AdamOptions{}),
          measured<AdamW>("AdamW", AdamWOptions{}),
          measured<Adam>("Adam, amsgrad", AdamOptions{.amsgrad = true}),
          measured<SGD>("SGD", SGDOptions{}),
          measured<SGD>("SGD, momentum", SGDOptions{.momentum = 0.9F}),
          measured<SGD>("SGD, Nesterov", SGDOptions{.momentum = 0.9F, .nesterov = true}),
          measured<RMSprop>("RMSprop", RMSpropOptions{}),
          measured<RMSprop>("RMSprop, momentum", RMSpropOptions{.momentum = 0.9F}),
          measured<RMSprop>("RMSprop, centered", RMSpropOptions{.momentum = 0.9F, .centered = true}),
          measured<Adagrad>("Adagrad", AdagradOptions{}),
          measured<Adadelta>("Adadelta", AdadeltaOptions{}),
          measured<Adamax>("Adamax", AdamaxOptions{}),
          measured<Nadam>("Nadam", NadamOptions{}),
          measured<Lion>("Lion", LionOptions{}),
          measured<Ftrl>("Ftrl", FtrlOptions{}),
          measured<ScheduleFreeAdamW>("ScheduleFreeAdamW", ScheduleFreeAdamWOptions{}),
          measured<Lamb>("LAMB", LambOptions{}, kLambAgain),
          measured<Adafactor>("Adafactor", AdafactorOptions{}, kAdafactorAgain)};
}

// Arrays of a matrix with rows of 1024.
struct BenchArrays {
  explicit BenchArrays(std::size_t floats)
      : shape{static_cast<std::int64_t>(floats / 1024), 1024}, parameters(floats), gradients(floats) {
    for (std::size_t i = 0; i < floats; ++i) {
      parameters[i] = static_cast<float>(i % 1021) * 1e-3F - 0.5F;
      gradients[i] = static_cast<float>(i % 1013) * 1e-4F - 0.05F;
    }
    for (std::vector<float>& slot : slots) slot.resize(floats);
  }

  // From step 2 on: the first one of a slot touches its memory.
  double seconds_of_update(const Optimizer& optimizer, std::int64_t step) {
    std::vector<std::span<float>> spans;
    const std::size_t count = optimizer.slot_names().size();
    for (std::size_t slot = 0; slot < count; ++slot) {
      std::ranges::fill(slots[slot], optimizer.initial_value_of_slot(slot));
      spans.emplace_back(slots[slot]);
    }
    const ParameterArray array{.name = "w", .shape = &shape};
    const auto update = [&](std::int64_t one) {
      if (optimizer.needs_whole_arrays()) {
        optimizer.update_array(array, one, parameters, gradients, spans);
      } else {
        optimizer.update(one, parameters, gradients, spans);
      }
    };
    update(step);
    const std::clock_t begin = std::clock();
    update(step + 1);
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  }

  const Shape shape;
  std::vector<float> parameters;
  std::vector<float> gradients;
  // The most that a rule of the list has.
  std::vector<float> slots[3];
};

}  // namespace

int main(int count, char** arguments) {
  const std::size_t floats = count > 1 ? std::strtoull(arguments[1], nullptr, 10) / 1024 * 1024 : std::size_t{1} << 24;
  const int rounds = count > 2 ? std::atoi(arguments[2]) : 7;
  if (floats == 0 || rounds < 1) {
    std::fprintf(stderr, "bench_optimizers [FLOATS] [ROUNDS]: at least 1024 floats and one round\n");
    return 1;
  }
  BenchArrays arrays(floats);
  std::vector<Measured> optimizers = all_optimizers();
  for (int round = 0; round < rounds; ++round) {
    for (Measured& one : optimizers) {
      one.seconds = std::min(one.seconds, arrays.seconds_of_update(*one.optimizer, 1 + 2 * round));
    }
  }
  const auto elements = static_cast<double>(floats);
  const double of_adam = optimizers.front().rate(elements);
  std::printf("%zu floats, one thread, the fastest of %d updates\n", floats, rounds);
  std::printf("%-20s %14s %8s %8s %8s\n", "optimizer", "bytes/element", "ms", "GB/s", "of Adam");
  for (const Measured& one : optimizers) {
    std::printf("%-20s %14d %8.1f %8.1f %8.2f\n", one.name.c_str(), one.bytes(), one.seconds * 1e3, one.rate(elements),
                one.rate(elements) / of_adam);
  }
  return 0;
}
