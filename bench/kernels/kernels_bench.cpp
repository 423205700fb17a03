// Times our own loops on one thread and on all cores at once, for each instruction set of the machine, in turns with a
// copy of memory: after each call of a loop, memcpy copies an array of the same size on as many threads. All times are
// of processors, so that other work on them counts for little.
//
//   bytes_per_second  what a loop must read and write at least, once for each pass over memory that it makes
//   of_memcpy         the median of the turns' ratios of such rates. memcpy's counts both what it reads and writes.
//
// Cores share the memory, so a copy on all of them is slower on each. Former* are loops as they were before, with the
// functions of the C library.

#include <benchmark/benchmark.h>

#include <time.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "compute/cpu/kernels/vector_kernels.h"
#include "core/huge_pages.h"
#include "holdfast/core/random.h"
#include "holdfast/nn/layer_normalization.h"
#include "holdfast/optim/nadam.h"
#include "holdfast/optim/rmsprop.h"
#include "nn/model/description.h"
#include "nn/plan/model_plan.h"
#include "optim/update_pass.h"

namespace holdfast::compute {
namespace {

// An array takes 16 MiB, more than the caches of a single core, so a loop and a copy both reach beyond them.
constexpr std::int64_t kRows = 4096;
constexpr std::int64_t kColumns = 1024;
constexpr std::int64_t kFloats = kRows * kColumns;

// Memory such as plans have for their arrays: loops and copies take longer where vectors lie across two lines.
class Floats {
 public:
  explicit Floats(std::int64_t count, float value = 0)
      : count_(count), memory_(allocate_floats(static_cast<std::size_t>(count))) {
    std::fill_n(data(), count, value);
  }
  Floats(const Floats& other) : Floats(other.count_) { *this = other; }
  // Copies into the memory that is there. Both have equally many.
  Floats& operator=(const Floats& other) {
    std::copy_n(other.data(), count_, data());
    return *this;
  }

  float* data() const { return memory_.get(); }
  float* begin() const { return data(); }
  float* end() const { return data() + count_; }

 private:
  std::int64_t count_;
  std::unique_ptr<float[], FloatsRelease> memory_;
};

Floats normal_floats(std::uint64_t number) {
  Random random(number, Purpose::user, 0, 0);
  Floats floats(kFloats);
  for (std::int64_t i = 0; i < kFloats; ++i) floats.data()[i] = random.normal();
  return floats;
}

Floats masked_half(const Floats& scores) {
  Floats masked = scores;
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::fill_n(masked.data() + row * kColumns, kColumns / 2, -std::numeric_limits<float>::infinity());
  }
  return masked;
}

struct Arrays {
  Floats a = normal_floats(1);
  Floats b = normal_floats(2);
  // Results of the loops, and slots of the optimizers. Rules take square roots of slots, so none begins negative.
  Floats c = Floats(kFloats, 0.5F);
  Floats d = Floats(kFloats, 0.5F);
  Floats copied = Floats(kFloats, 0.5F);
  Floats columns = Floats(kColumns, 1.0F);
  Floats sums = Floats(kColumns);
  Floats more_sums = Floats(kColumns);
  Floats last_sums = Floats(kColumns);
};

// Cases write into arrays, and optimizers into what others read. All begin with the same numbers, so that a case is
// measured on the same data alone and after others: a slot that had become negative would make NaN of everything.
Arrays& fresh_arrays() {
  static const Arrays first;
  // Shards of a step have arrays of their own.
  static thread_local Arrays all;
  // Copied into the memory that is there already.
  all = first;
  return all;
}

// A loop, and how many floats it reads and writes for each element.
struct Case {
  const char* name;
  int floats;
  void (*run)(const VectorKernels& kernels, Arrays& of);
};

constexpr ColumnRange kAllColumns = {0, kColumns};

NormalizationRows normalization(Arrays& of) {
  return {of.a.data(), kRows, kColumns, of.sums.data(), of.columns.data(), of.columns.data()};
}

// Layer normalization of kRows samples, as a plan runs it.
struct NormalizedRows {
  explicit NormalizedRows(std::size_t tile_bytes)
      : description(*model.description()),
        training(description.training, options(tile_bytes), *backend, true),
        inference(description.inference, options(tile_bytes), *backend, false),
        arena(static_cast<std::int64_t>(std::max(training.arena_bytes(), inference.arena_bytes()) / sizeof(float))) {}

  MemoryOptions options(std::size_t tile_bytes) const {
    MemoryOptions memory = description.memory_options(kRows);
    memory.tile_bytes = tile_bytes;
    return memory;
  }
  static Model normalized() {
    const Value x = input({kColumns});
    return Model(x, LayerNormalization{}(x));
  }
  // In the order of ModelPlan::Bases. The model has no buffers, and so no contributions to them: both places get arrays
  // that are there already.
  ModelPlan::Bases bases(Arrays& of) {
    ModelPlan::Bases all;
    const auto add = [&](const Floats& floats) { all.push_back(reinterpret_cast<std::byte*>(floats.data())); };
    for (const Floats* const floats : {&arena, &parameters, &parameters, &gradients, &gradients, &of.a, &of.b}) {
      add(*floats);
    }
    return all;
  }

  // The order matters: the description belongs to the model, and both plans are made from the description.
  const Model model = normalized();
  const ModelDescription& description;
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  ModelPlan training;
  ModelPlan inference;
  Floats arena;
  Floats parameters = Floats(2 * kColumns, 0.5F);
  Floats gradients = Floats(2 * kColumns);
};

template <std::size_t kTileBytes>
NormalizedRows& normalized_rows() {
  static thread_local NormalizedRows rows(kTileBytes);
  return rows;
}

template <std::size_t kTileBytes>
// Plans look their loops up in each call, so they follow the set that is forced, and take no table.
void run_normalization(const VectorKernels&, Arrays& of) {
  NormalizedRows& rows = normalized_rows<kTileBytes>();
  rows.inference.forward(rows.bases(of), [](const std::string&) {});
}

template <std::size_t kTileBytes>
void train_normalization(const VectorKernels&, Arrays& of) {
  NormalizedRows& rows = normalized_rows<kTileBytes>();
  const ModelPlan::Bases bases = rows.bases(of);
  rows.training.forward(bases, [](const std::string&) {});
  for (const BackwardPart& part : rows.training.backward_parts(1))
    rows.training.backward(part, bases, [](const std::string&) {});
}

// A function that takes one operand.
template <ElementFunction kFunction>
void run_function(const VectorKernels& kernels, Arrays& of) {
  const ElementLane operands[] = {{of.a.data()}, {}, {}};
  kernels.run_instruction(kFunction, operands, kFloats, of.c.data());
}

constexpr std::size_t kTile = std::size_t{256} << 10;

const Case kCases[] = {
    {"Relu", 2, [](const VectorKernels& k, Arrays& of) { k.relu.forward(of.a.data(), of.c.data(), kFloats); }},
    {"Tanh", 2, [](const VectorKernels& k, Arrays& of) { k.tanh.forward(of.a.data(), of.c.data(), kFloats); }},
    {"Sigmoid", 2, [](const VectorKernels& k, Arrays& of) { k.sigmoid.forward(of.a.data(), of.c.data(), kFloats); }},
    {"Silu", 2, run_function<ElementFunction::silu>},
    {"SiluSlope", 2, run_function<ElementFunction::silu_slope>},
    {"GeluTanh", 2, run_function<ElementFunction::gelu_tanh>},
    {"GeluTanhSlope", 2, run_function<ElementFunction::gelu_tanh_slope>},
    {"Exponential", 2, run_function<ElementFunction::exponential>},
    {"Gelu", 2, [](const VectorKernels& k, Arrays& of) { k.gelu.forward(of.a.data(), of.c.data(), kFloats); }},
    {"GeluBackward", 3,
     [](const VectorKernels& k, Arrays& of) { k.gelu.backward(of.a.data(), of.b.data(), of.c.data(), kFloats); }},
    {"Softmax", 2, [](const VectorKernels& k, Arrays& of) { k.softmax(of.a.data(), kRows, kColumns, of.c.data()); }},
    // Rows as those of a classifier of ten classes.
    {"SoftmaxOfTen", 2,
     [](const VectorKernels& k, Arrays& of) { k.softmax(of.a.data(), kFloats / 10, 10, of.c.data()); }},
    // As attention masks scores: half of each row is minus infinite.
    {"SoftmaxOfMasked", 2,
     [](const VectorKernels& k, Arrays& of) {
       static thread_local const Floats masked = masked_half(of.a);
       k.softmax(masked.data(), kRows, kColumns, of.c.data());
     }},
    {"BinaryLossOfLogits", 3,
     [](const VectorKernels& k, Arrays& of) {
       benchmark::DoNotOptimize(k.binary_loss_of_logits(of.a.data(), of.b.data(), kFloats, 1, of.c.data()));
     }},
    {"Dropout", 2,
     [](const VectorKernels& k, Arrays& of) {
       k.dropout(philox_sequence(1, 2, 3, 4), of.a.data(), kFloats, 0.1F, 1.1F, of.c.data());
     }},
    {"Adam", 7,
     [](const VectorKernels& k, Arrays& of) {
       const AdamStep step = {.beta_1_rest = 0.1F, .beta_2_rest = 0.001F, .rate = 1e-3F, .epsilon = 1e-7F};
       k.adam(step, kFloats, of.a.data(), of.b.data(), of.c.data(), of.d.data());
     }},
    // Rules that are described, and run as element programs.
    {"Nadam", 7,
     [](const VectorKernels&, Arrays& of) {
       static const auto pass = Nadam{}.pass(1);
       const std::span<float> slots[] = {of.c, of.d};
       run_pass(*pass, {of.a, of.b, slots});
     }},
    {"RMSprop", 5,
     [](const VectorKernels&, Arrays& of) {
       static const auto pass = RMSprop{}.pass(1);
       const std::span<float> slots[] = {of.c};
       run_pass(*pass, {of.a, of.b, slots});
     }},
    {"Add", 3,
     [](const VectorKernels& k, Arrays& of) {
       const ElementLane operands[] = {{of.a.data()}, {of.b.data()}, {of.b.data()}};
       k.run_instruction(ElementFunction::add, operands, kFloats, of.c.data());
     }},
    {"ColumnSums", 1,
     [](const VectorKernels& k, Arrays& of) {
       k.column_sums(of.a.data(), kRows, kColumns, kAllColumns, of.more_sums.data());
     }},
    {"RowSums", 1,
     [](const VectorKernels& k, Arrays& of) {
       k.reduce({.outer = kRows, .reduced = kColumns}, of.a.data(), of.d.data());
     }},
    {"LayerNormalization", 2, run_normalization<kTile>},
    {"LayerNormalizationAtOnce", 2, run_normalization<0>},
    // The forward pass, and a backward pass that reads the input and the output's gradient again.
    {"LayerNormalizationTraining", 5, train_normalization<kTile>},
    {"LayerNormalizationTrainingAtOnce", 5, train_normalization<0>},
    // Twice: the statistics read the input once, normalizing reads it again and writes.
    {"BatchNormalization", 3,
     [](const VectorKernels& k, Arrays& of) {
       k.column_moments(of.a.data(), kRows, kColumns, kAllColumns, of.sums.data(), of.more_sums.data());
       k.normalize(normalization(of), of.columns.data(), of.c.data());
     }},
    {"BatchNormalizationBackward", 5,
     [](const VectorKernels& k, Arrays& of) {
       k.normalization_sums(normalization(of), of.b.data(), kAllColumns, of.more_sums.data(), of.last_sums.data());
       k.normalize_backward(normalization(of), of.b.data(), of.more_sums.data(), of.last_sums.data(), kRows,
                            of.c.data());
     }},
};

void Copy(benchmark::State& state) {
  Arrays& of = fresh_arrays();
  std::memcpy(of.c.data(), of.a.data(), kFloats * sizeof(float));
  for (auto _ : state) std::memcpy(of.c.data(), of.a.data(), kFloats * sizeof(float));
  state.SetBytesProcessed(state.iterations() * kFloats * 2 * static_cast<std::int64_t>(sizeof(float)));
}

// One thread, and one on each core.
std::vector<int> thread_counts() {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return cores > 1 ? std::vector{1, cores} : std::vector{1};
}
void set_threads(benchmark::internal::Benchmark* benchmark) {
  for (const int threads : thread_counts()) benchmark->Threads(threads);
}
BENCHMARK(Copy)->Apply(set_threads);

template <float (*kFunction)(float)>
void Former(benchmark::State& state) {
  Arrays& of = fresh_arrays();
  for (auto _ : state) {
    for (std::int64_t i = 0; i < kFloats; ++i) of.c.data()[i] = kFunction(of.a.data()[i]);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kFloats * 2 * static_cast<std::int64_t>(sizeof(float)));
}

float former_tanh(float x) {
  return std::tanh(x);
}
float former_gelu(float x) {
  return x / 2 * (1 + std::erf(x * 0.70710678F));
}
BENCHMARK(Former<former_tanh>)->Name("FormerTanh");
BENCHMARK(Former<former_gelu>)->Name("FormerGelu");

double processor_seconds(const auto& work) {
  const auto now = [] {
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  work();
  return now() - begin;
}

// Threads run the loop together, then copy together, so that they share the memory in both.
void run_in_turns(benchmark::State& state, InstructionSet set, const Case& each, std::barrier<>& together) {
  force_instruction_set(set);
  Arrays& of = fresh_arrays();
  each.run(vector_kernels(), of);  // makes what is made once
  std::vector<double> ratios;
  for (auto _ : state) {
    // Threads of a benchmark make equally many iterations, so none waits here in vain.
    together.arrive_and_wait();
    const double seconds = processor_seconds([&] { each.run(vector_kernels(), of); });
    together.arrive_and_wait();
    const double of_copy = processor_seconds([&] {
      std::memcpy(of.copied.data(), of.a.data(), kFloats * sizeof(float));
      benchmark::ClobberMemory();
    });
    ratios.push_back(each.floats / seconds / (2 / of_copy));
    state.SetIterationTime(seconds);
  }
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2), ratios.end());
  state.counters["of_memcpy"] = {ratios[ratios.size() / 2], benchmark::Counter::kAvgThreads};
  state.SetBytesProcessed(state.iterations() * kFloats * each.floats * static_cast<std::int64_t>(sizeof(float)));
}

void register_cases() {
  for (const InstructionSet set : supported_instruction_sets()) {
    for (const Case& each : kCases) {
      const std::string name = std::string(each.name) + "/" + std::string(name_of(set));
      for (const int threads : thread_counts()) {
        // Shared, since the benchmark copies `run`, and the copies must meet at one barrier.
        const auto run = [set, &each, together = std::make_shared<std::barrier<>>(threads)](benchmark::State& state) {
          run_in_turns(state, set, each, *together);
        };
        benchmark::RegisterBenchmark(name.c_str(), run)->Threads(threads)->UseManualTime();
      }
    }
  }
}

}  // namespace
}  // namespace holdfast::compute

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  holdfast::compute::register_cases();
  benchmark::RunSpecifiedBenchmarks();
}
