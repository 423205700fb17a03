// Looks for races between the threads of a kernel with the thread sanitizer. Kernels with shared memory, shuffles,
// atomic operations or flags are compiled for the host and run on grids that the sanitizer sees as concurrent
// (fiber_grid.h).

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "collective/memory/memory_communicator.h"
#include "collective/nccl/cuda_collective_stream.h"
#include "collective/shard_assignment.h"
#include "compute/arithmetic/gradient_clipping.h"
#include "compute/cuda/kernels/columns.h"
#include "compute/cuda/kernels/cuda_array_kernels.h"
#include "compute/cuda/kernels/cuda_gradient_norms.h"
#include "compute/cuda/kernels/cuda_losses.h"
#include "compute/cuda/kernels/cuda_metrics.h"
#include "compute/cuda/kernels/cuda_operations.h"
#include "compute/cuda/products/transposed_arrays.h"
#include "compute/cuda/runtime/cuda_arrays.h"
#include "compute/cuda/runtime/cuda_context.h"
#include "compute/cuda/runtime/cuda_digester.h"
#include "holdfast/core/memory_space.h"
#include "races/fiber_grid.h"

// Reports do not end the process: the tests judge them, and two tests may find the same race.
extern "C" const char* __tsan_default_options() {
  return "exitcode=0:suppress_equal_stacks=0:suppress_equal_addresses=0:report_thread_leaks=0:history_size=7";
}

namespace holdfast::compute {
namespace {

using emulation::Granularity;
using emulation::race_settings;

// Rows, columns and elements that give a grid two or three blocks, or some dozens.
struct Sizes {
  std::int64_t few;   // rows that are computed by a warp each
  std::int64_t rows;  // rows that are computed by a block each
  std::int64_t elements;
};

constexpr Sizes kSmall = {.few = 20, .rows = 2, .elements = 3000};
constexpr Sizes kLarge = {.few = 100, .rows = 7, .elements = 20'000};

constexpr std::int64_t kShortRow = 10;
constexpr std::int64_t kLongRow = 1500;

// An array of the emulated device, with numbers between `first` and `first` + 1.
class Arrays {
 public:
  float* make(std::int64_t floats, float first = 0) {
    const std::size_t count = static_cast<std::size_t>(floats) + 16;
    blocks_.emplace_back(static_cast<float*>(std::aligned_alloc(256, (count * sizeof(float) + 255) / 256 * 256)));
    float* const array = blocks_.back().get();
    for (std::size_t i = 0; i < count; ++i) array[i] = first + static_cast<float>(i * 2'654'435'761U % 1000) / 1000;
    return array;
  }
  float* make_labels(std::int64_t rows, std::int64_t classes) {
    float* const labels = make(rows);
    for (std::int64_t row = 0; row < rows; ++row) labels[row] = static_cast<float>(row % classes);
    return labels;
  }

 private:
  struct Free {
    void operator()(float* array) const { std::free(array); }
  };
  std::vector<std::unique_ptr<float, Free>> blocks_;
};

struct Kernels {
  const char* name;
  void (*run)(const Sizes& sizes, Arrays& arrays);
};

// All kernels share a workspace, so each finds what the one before it left there.
SumWorkspace& sum_workspace() {
  static SumWorkspace workspace{};
  return workspace;
}

void run_losses(const Sizes& sizes, Arrays& arrays) {
  BadLabel bad_label = kNoBadLabel;
  for (const std::int64_t outputs : {kShortRow, kLongRow}) {
    const std::int64_t rows = outputs == kShortRow ? sizes.few : sizes.rows;
    for (const LossKind kind : {LossKind::sparse_categorical_crossentropy, LossKind::categorical_crossentropy}) {
      float* const labels = arrays.make_labels(rows, outputs);
      // Two rows report a bad label.
      if (kind == LossKind::sparse_categorical_crossentropy) labels[0] = labels[rows - 1] = -1;
      float* const targets = kind == LossKind::categorical_crossentropy ? arrays.make(rows * outputs) : labels;
      for (const float* const weights : {static_cast<float*>(nullptr), arrays.make(rows)}) {
        queue_loss({kind, true, rows, outputs},
                   {{arrays.make(rows * outputs, 0.1F), targets, weights}, arrays.make(rows * outputs), arrays.make(1)},
                   0.5F, &sum_workspace(), &bad_label, nullptr);
      }
    }
  }
  for (const LossKind kind : {LossKind::binary_crossentropy, LossKind::mean_squared_error}) {
    const std::int64_t elements = sizes.few * 100;
    for (const float* const weights : {static_cast<float*>(nullptr), arrays.make(sizes.few)}) {
      // Two rows have a target that is not a probability.
      float* const targets = arrays.make(elements);
      targets[7 * 100 + 3] = 2;
      targets[12 * 100] = -1;
      bad_label = kNoBadLabel;
      queue_loss({kind, true, sizes.few, 100},
                 {{arrays.make(elements), targets, weights}, arrays.make(elements), arrays.make(1)}, 0.5F,
                 &sum_workspace(), &bad_label, nullptr);
      const bool is_checked = kind == LossKind::binary_crossentropy;
      EXPECT_EQ(bad_label >> 32, is_checked ? 7U : kNoBadLabel >> 32) << "the first such row";
    }
  }
}

void run_metrics(const Sizes& sizes, Arrays& arrays) {
  for (const std::int64_t outputs : {kShortRow, kLongRow}) {
    const std::int64_t rows = outputs == kShortRow ? sizes.few : sizes.rows;
    for (const MetricKind kind : {MetricKind::sparse_categorical_accuracy, MetricKind::categorical_accuracy}) {
      queue_metric({kind, 0.5F, rows, outputs}, {arrays.make(rows * outputs), arrays.make(rows * outputs)},
                   arrays.make(1), &sum_workspace(), nullptr);
    }
  }
  queue_metric({MetricKind::binary_accuracy, 0.5F, sizes.few, 100},
               {arrays.make(sizes.few * 100), arrays.make(sizes.few * 100), arrays.make(sizes.few)}, arrays.make(1),
               &sum_workspace(), nullptr);
}

void run_column_sums(const Sizes& sizes, Arrays& arrays) {
  for (const MatrixExtent& extent :
       {MatrixExtent{sizes.few * 7, 40}, MatrixExtent{sizes.few * 5, 3}, MatrixExtent{5, 64}, MatrixExtent{300, 1}}) {
    const auto workspace_floats = static_cast<std::int64_t>(column_sums_bytes(extent) / sizeof(float));
    sum_columns(nullptr, "a sum", extent, arrays.make(extent.rows * extent.columns),
                reinterpret_cast<std::byte*>(arrays.make(workspace_floats)), arrays.make(extent.columns));
  }
}

void run_transpositions(const Sizes& sizes, Arrays& arrays) {
  for (const MatrixExtent& extent : {MatrixExtent{33, sizes.few}, MatrixExtent{25, 6}, MatrixExtent{sizes.few, 31}}) {
    const std::int64_t elements = extent.rows * extent.columns;
    transpose(extent, arrays.make(elements), arrays.make(elements), nullptr);
    transpose(extent, arrays.make(elements), reinterpret_cast<Bfloat16*>(arrays.make(elements)), nullptr);
  }
}

void run_clipping(const Sizes& sizes, Arrays& arrays) {
  const auto floats = static_cast<std::size_t>(sizes.elements);
  const std::vector<NormRange> ranges = {{0, 10}, {16, floats / 2}, {floats / 2 + 8, floats}};
  queue_clip_norms(ranges, 0.5F, arrays.make(sizes.elements), arrays.make(sizes.elements),
                   arrays.make(static_cast<std::int64_t>(norm_workspace_floats(ranges))), nullptr);
}

void run_softmax(const Sizes& sizes, Arrays& arrays) {
  CudaContext context(0);
  for (const std::int64_t outputs : {kShortRow, kLongRow}) {
    const std::int64_t rows = outputs == kShortRow ? sizes.few : sizes.rows;
    const auto softmax = make_cuda_activation(context, {Activation::softmax, rows, outputs});
    float* const output = arrays.make(rows * outputs);
    softmax->forward(arrays.make(rows * outputs), output);
    softmax->backward(output, arrays.make(rows * outputs), arrays.make(rows * outputs));
    // In place.
    softmax->forward(output, output);
  }
}

void run_attention(const Sizes& sizes, Arrays& arrays) {
  CudaContext context(0);
  CudaArrayKernels kernels(context);
  for (const std::int64_t keys : {kShortRow, kLongRow}) {
    const AttentionScores scores = {.queries = keys == kShortRow ? sizes.few : sizes.rows,
                                    .keys = keys,
                                    .window = keys - 3};  // some keys are left out, and their shares are set to 0
    const std::int64_t elements = scores.rows() * keys;
    float* const shares = arrays.make(elements);
    kernels.attention_shares(scores, arrays.make(elements), arrays.make(keys), shares);
    kernels.attention_shares_backward(scores, shares, arrays.make(elements), arrays.make(elements));
    // In place.
    kernels.attention_shares(scores, shares, nullptr, shares);
    float* const gradient = arrays.make(elements);
    kernels.attention_shares_backward(scores, shares, gradient, gradient);
  }
}

// A step in the middle of sequences, a part of which is masked, so that threads would meet in the arrays of sequences.
void run_recurrent_cells(const Sizes& sizes, Arrays& arrays) {
  CudaContext context(0);
  CudaArrayKernels kernels(context);
  for (const CellKind kind : {CellKind::simple, CellKind::lstm, CellKind::gru}) {
    const RecurrentCells cells = {.kind = kind, .samples = sizes.few, .units = 33, .steps = 3};
    const std::int64_t unit_count = cells.samples * cells.units;
    const std::int64_t sequences = unit_count * cells.steps;
    const bool has_cell = kind == CellKind::lstm;
    float* const mask = arrays.make(cells.samples * cells.steps);
    for (std::int64_t i = 0; i < cells.samples * cells.steps; i += 2) mask[i] = 0;
    float* const kept = arrays.make(unit_count * 4);
    float* const state = arrays.make(unit_count);
    float* const cell = has_cell ? arrays.make(unit_count) : nullptr;
    float* const next_state = arrays.make(unit_count);
    float* const next_cell = has_cell ? arrays.make(unit_count) : nullptr;
    kernels.cells_forward(cells, {.x = arrays.make(sequences * cells.gates()) + cells.gates() * cells.units,
                                  .mask = mask + 1,
                                  .s = arrays.make(unit_count * cells.gates()),
                                  .state = state,
                                  .cell = cell,
                                  .kept = kept,
                                  .next_state = next_state,
                                  .next_cell = next_cell,
                                  .output = arrays.make(sequences) + cells.units});
    kernels.cells_backward(cells, {.mask = mask + 1,
                                   .kept = kept,
                                   .state = state,
                                   .cell = cell,
                                   .next_state = next_state,
                                   .next_cell = next_cell,
                                   .output_gradient = arrays.make(sequences) + cells.units,
                                   .through_product = arrays.make(unit_count),
                                   .carried = arrays.make(unit_count),
                                   .carried_cell = has_cell ? arrays.make(unit_count) : nullptr,
                                   .x_gradient = arrays.make(sequences * cells.gates()) + cells.gates() * cells.units,
                                   .s_gradient = arrays.make(unit_count * cells.gates())});
  }
}

// Rows of a table for ids of which several are the same and two are not in it, and rows of another array. Only one
// thread may add to a place of the table, whatever the ids.
void run_gathered_rows(const Sizes& sizes, Arrays& arrays) {
  CudaContext context(0);
  CudaArrayKernels kernels(context);
  for (const std::int64_t width : {3, 300}) {
    const RowGather gather = {.ids = sizes.few, .table_rows = 7, .width = width};
    std::vector<std::int32_t> numbers;
    for (std::int64_t i = 0; i < gather.ids; ++i) numbers.push_back(static_cast<std::int32_t>(i * i % 9) - 1);
    float* const ids = arrays.make(gather.ids);
    std::memcpy(ids, numbers.data(), numbers.size() * sizeof(std::int32_t));
    float* const table = arrays.make(gather.table_rows * width);
    float* const rows = arrays.make(gather.ids * width);
    kernels.gather(gather, table, ids, rows);
    kernels.scatter_sum(gather, rows, ids, table);

    const std::vector<std::int64_t> taken = {4, 0, 4, 6, 1};
    gather_rows(table, static_cast<std::size_t>(width), taken.data(), taken.size(), rows, nullptr);
    gather_host_rows(table, static_cast<std::size_t>(width), taken.data(), taken.size(), rows, nullptr);
  }
}

void run_batch_normalization(const Sizes& sizes, Arrays& arrays) {
  CudaContext context(0);
  for (const std::int64_t channels : {5, 40}) {
    const std::int64_t rows = sizes.few * 5;
    const auto operation =
        make_cuda_batch_normalization(context, {rows, channels, 1e-3F}, {.training = true, .input_gradient = true});
    float* const input = arrays.make(rows * channels);
    float* const gamma = arrays.make(channels);
    operation->forward_training(input, gamma, arrays.make(channels), arrays.make(rows * channels));
    operation->backward(input, gamma, arrays.make(rows * channels), arrays.make(rows * channels), arrays.make(channels),
                        arrays.make(channels));
    operation->contribute(arrays.make(2 * channels + 1));
  }
}

void run_digest(const Sizes& sizes, Arrays& arrays) {
  const auto floats = static_cast<std::size_t>(sizes.elements);
  const std::vector<std::span<const float>> spans = {
      {arrays.make(3 * sizes.elements), 3 * floats + 1}, {arrays.make(sizes.elements), floats}, {arrays.make(3), 3}};
  CudaDigester digester;
  digester.queue(spans, nullptr);
  EXPECT_EQ(digester.result(), host_memory().digest_of(spans));
}

void run_finite_flags(const Sizes& sizes, Arrays& arrays) {
  float* const values = arrays.make(sizes.elements);
  for (std::int64_t i = 0; i < sizes.elements; i += 2) values[i] = HUGE_VALF;
  std::uint32_t flag = 0;
  flag_not_finite(values, static_cast<std::size_t>(sizes.elements), &flag, nullptr);
  EXPECT_EQ(flag, 1U);
}

void run_collective(const Sizes& sizes, Arrays& arrays) {
  CudaCollectiveStream stream(0, nullptr);
  for (const int leaf_count : {1, 3, 17}) {
    const ShardAssignment assignment = ShardAssignment::even(leaf_count, leaf_count);
    const std::vector<SumInstruction> program = sum_program(ShardTree(leaf_count), assignment.covering_nodes());
    std::vector<const float*> leaves;
    for (int leaf = 0; leaf < leaf_count; ++leaf) leaves.push_back(arrays.make(sizes.elements, HUGE_VALF));
    stream.begin_sums();
    // Some are added in fours, and the rest one by one; all of them find a value that is not finite.
    stream.add_in_order({.program = program,
                         .leaves = leaves,
                         .floats = static_cast<std::size_t>(sizes.elements) - 1,
                         .sum = const_cast<float*>(leaves[0])});
    stream.mark();
    EXPECT_TRUE(stream.has_passed_mark());
    EXPECT_FALSE(stream.were_finite());
  }
}

const std::vector<Kernels> kKernels = {{"Losses", run_losses},
                                       {"Metrics", run_metrics},
                                       {"ColumnSums", run_column_sums},
                                       {"Transpositions", run_transpositions},
                                       {"Clipping", run_clipping},
                                       {"Softmax", run_softmax},
                                       {"Attention", run_attention},
                                       {"RecurrentCells", run_recurrent_cells},
                                       {"GatheredRows", run_gathered_rows},
                                       {"BatchNormalization", run_batch_normalization},
                                       {"Digest", run_digest},
                                       {"FiniteFlags", run_finite_flags},
                                       {"Collective", run_collective}};

class KernelRaces : public testing::TestWithParam<Kernels> {
 protected:
  KernelRaces() { race_settings() = {}; }

  static int races(const Sizes& sizes) {
    Arrays arrays;
    const int before = emulation::reported_races();
    GetParam().run(sizes, arrays);
    return emulation::reported_races() - before;
  }
};

TEST_P(KernelRaces, AreNotBetweenThreads) {
  EXPECT_EQ(races(kSmall), 0);
}

TEST_P(KernelRaces, AreNotBetweenBlocksOfALargerGrid) {
  race_settings().granularity = Granularity::blocks;

  EXPECT_EQ(races(kLarge), 0);
}

INSTANTIATE_TEST_SUITE_P(All, KernelRaces, testing::ValuesIn(kKernels),
                         [](const auto& info) { return std::string(info.param.name); });

// Shows that the tests above see races.
using WithoutBarriers = KernelRaces;

TEST_P(WithoutBarriers, ThreadsRaceForSharedMemory) {
  race_settings().are_barriers_ordered = false;

  EXPECT_GT(races(kSmall), 0);
}

INSTANTIATE_TEST_SUITE_P(Seen, WithoutBarriers,
                         testing::Values(Kernels{"Losses", run_losses}, Kernels{"Metrics", run_metrics},
                                         Kernels{"ColumnSums", run_column_sums},
                                         Kernels{"Transpositions", run_transpositions},
                                         Kernels{"Clipping", run_clipping}, Kernels{"Softmax", run_softmax},
                                         Kernels{"Attention", run_attention},
                                         Kernels{"BatchNormalization", run_batch_normalization}),
                         [](const auto& info) { return std::string(info.param.name); });

using WithoutFences = KernelRaces;

TEST_P(WithoutFences, BlocksRaceForWhatTheOthersLeft) {
  race_settings() = {.granularity = Granularity::blocks, .are_fences_ordered = false};

  EXPECT_GT(races(kLarge), 0);
}

INSTANTIATE_TEST_SUITE_P(Seen, WithoutFences,
                         testing::Values(Kernels{"Losses", run_losses}, Kernels{"Metrics", run_metrics}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace holdfast::compute
