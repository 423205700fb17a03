// Each figure repeats what the object that allocates it does: a ModelTrainable its state and its workers, a
// MemoryCommunicator its blocks, a BatchLoader its buffers. A test compares the sum with what a process takes, so a new
// array that is forgotten here shows. docs/decisions/batch-size.md

#include "holdfast/train/training_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "collective/shard_accumulator.h"
#include "compute/backend.h"
#include "data/batches/batch_loader.h"
#include "data/stages/stage.h"
#include "holdfast/base/error.h"
#include "nn/model/description.h"
#include "train/context/replica_context.h"
#include "train/step/block_layout.h"
#include "train/step/outputs/output_evaluation.h"
#include "train/step/outputs/output_tiles.h"
#include "train/step/weight_averaging.h"

namespace holdfast {
namespace {

class TrainingMemoryPlan {
 public:
  TrainingMemoryPlan(const Replica::Context& context, const Model& model, const Optimizer& optimizer,
                     const std::vector<LossHandle>& losses, const Dataset& data, const TrainingMemoryOptions& options)
      : context_(context),
        model_(model),
        optimizer_(optimizer),
        data_(data),
        options_(options),
        layouts_(data.last_stage()->layouts()),
        evaluation_(model, losses, options.metrics),
        workers_(std::clamp(context.most_workers, 1, context.shards)) {
    check();
  }

  TrainingMemory run() const {
    const std::size_t arrays = state_arrays();
    return {.state = arrays + weights(),
            .gradients = gradients(),
            .samples = samples(),
            .passes = static_cast<std::size_t>(workers_) * pass(),
            // Both are of the arrays alone. The journal and other text is small.
            .saving = is_supervised() ? 2 * arrays : 0};
  }

 private:
  void check() const {
    if (context_.device != "cpu") {
      throw Error(
          ErrorCode::unsupported,
          fmt::format("training_memory() plans the memory of CPUs, and this replica computes on {}", context_.device));
    }
    // As many as fit() takes (fit_checks.cpp).
    const int most = std::numeric_limits<int>::max() / context_.shards;
    if (data_.batch_size() >= 1 && options_.accumulate >= 1 && options_.accumulate <= most) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("training_memory() got batches of {} samples, {} of them for a step; end the data set with "
                            "batch(), and accumulate 1 to {}",
                            data_.batch_size(), options_.accumulate, most));
  }

  static std::size_t bytes_of(std::size_t floats) { return floats * sizeof(float); }
  bool is_supervised() const { return !context_.run_directory.empty(); }
  std::size_t parameters() const { return bytes_of(model_.parameters().float_count()); }
  // Twice in the state: those that are trained, and the copy that the model of the application has after fit().
  std::size_t weights() const { return parameters() + bytes_of(model_.buffers().float_count()); }

  std::size_t state_arrays() const {
    const std::size_t averages = optimizer_.weight_average().is_kept ? parameters() : 0;
    const std::size_t kept = options_.keeps_weights ? weights() + averages : 0;
    return weights() + slots_of(optimizer_).size() * parameters() + kept;
  }

  // A supervised run touches all slots that any order of finished shards could need, and the two blocks after them, in
  // which ranks meet. A process by itself takes the first slots that are free: those of the shards that are computed,
  // and one for each level of the tree above them.
  std::size_t blocks() const {
    const int shards = context_.shards;
    const int added_first = ShardTree::parts_of_a_node(shards, static_cast<int>(options_.accumulate));
    const int times = static_cast<int>(options_.accumulate) / added_first;
    // With such steps a process has a second set of blocks, whose pages are touched as they are used.
    const std::size_t more = times == 1 ? 0 : used_blocks(shards * times) + 2;
    if (is_supervised()) return static_cast<std::size_t>(ShardAccumulator::slots_needed(shards, workers_)) + 2 + more;
    return times == 1 ? used_blocks(shards) : more;
  }

  std::size_t used_blocks(int shards) const {
    const auto levels = [](int count) { return static_cast<int>(std::bit_width(static_cast<unsigned>(count))); };
    return static_cast<std::size_t>(std::min(shards, workers_ + levels(shards - 1) - levels(workers_) + 1));
  }

  std::size_t gradients() const {
    const std::size_t floats = model_.parameters().float_count() + model_.description()->contribution_count();
    const BlockLayout layout(floats, evaluation_.sum_names().size());
    // Shards that are computed together wait for their right siblings, one on each level of their tree.
    const auto together =
        static_cast<std::uint64_t>(ShardTree::parts_of_a_node(context_.shards, static_cast<int>(options_.accumulate)));
    const auto waiting = static_cast<std::size_t>(workers_ * std::bit_width(together - 1));
    const GradientClipping clipping = optimizer_.clipping();
    const bool is_clipped = clipping.value || clipping.norm || clipping.global_norm;
    return blocks() * bytes_of(layout.block_floats()) + waiting * bytes_of(layout.gradient_floats()) +
           (has_own_gradients() ? parameters() : 0) + (is_clipped ? parameters() : 0);
  }

  // Gradients that differ from the sum over the shards.
  bool has_own_gradients() const {
    return layouts_.has_weights || std::ranges::any_of(model_.description()->parameter_starts,
                                                       [](const auto& start) { return !start.regularizer.is_none(); });
  }

  std::int64_t batch() const { return std::min(data_.batch_size(), data_.size()); }
  // The largest shard, since the arrays of a pass are made for it.
  std::int64_t samples_of_shard() const { return (batch() + context_.shards - 1) / context_.shards; }

  std::size_t samples() const {
    const std::int64_t of_step = std::min(batch() * options_.accumulate, data_.size());
    // One is in use.
    const auto batches = static_cast<std::size_t>(1 + data_.prefetch_depth());
    return batches * static_cast<std::size_t>(of_step) * bytes_of(layouts_.inputs.words() + layouts_.targets.words());
  }

  // One shard. Programs of losses and metrics have arenas of their own, and share the workspace with the model's.
  std::size_t pass() const {
    const std::int64_t samples = samples_of_shard();
    // A back end of its own: its workspace grows with each kernel that is made, and shows what one worker needs.
    const auto backend = compute::make_cpu_backend(context_.threads_per_shard, context_.precision);
    if (evaluation_.rows_at_once() > 0) return pass_in_tiles(samples, *backend);
    const ModelDescription& model = *model_.description();
    const ModelPlan plan(model.training, model.memory_options(samples), *backend, true);
    std::size_t bytes = plan.arena_bytes() + plan.own_bytes_of_kernels() + converted(samples);
    for (const ModelArray& output : model_.outputs()) bytes += bytes_of(elements(output.spec.shape, samples));
    // Each output's part of the weights decides which program computes its loss.
    std::vector<Shape> shapes;
    if (layouts_.has_weights) shapes = evaluation_.shapes_of_weights(layouts_.targets.arrays().back().shape);
    const auto weights_of = [&](std::size_t output) {
      return shapes.empty() ? std::nullopt : std::optional(shapes[output]);
    };
    const auto add = [&](std::optional<SumsGraph> graph) {
      if (graph) bytes += ValueProgram(*std::move(graph), *backend).planned_bytes(samples);
    };
    for (std::size_t output = 0; output < model_.outputs().size(); ++output) {
      add(evaluation_.graph_of_output_loss(output, weights_of(output)));
    }
    for (std::size_t index = 0; index < evaluation_.metrics().size(); ++index) {
      add(evaluation_.graph_of_metric(index, weights_of(evaluation_.metrics()[index].output)));
    }
    return bytes + backend->workspace_bytes();
  }

  // The same where outputs are computed some rows at a time, with the product that makes them (OutputTiles).
  std::size_t pass_in_tiles(std::int64_t samples, compute::Backend& backend) const {
    const ModelDescription& model = *model_.description();
    const GraphBeforeProduct before = without_last_product(model.training);
    const ModelPlan plan(before.graph, model.memory_options(samples), backend, true);
    const std::int64_t rows = samples * before.product.rows;
    const std::int64_t at_once = evaluation_.rows_at_once();
    std::size_t bytes = plan.arena_bytes() + plan.own_bytes_of_kernels() + converted(samples) +
                        bytes_of(ProductTiles::planned_floats(before.product, rows, at_once, true));
    for (std::size_t index = 0; index < evaluation_.metrics().size(); ++index) {
      std::optional<SumsGraph> graph = evaluation_.graph_of_metric_of_rows(index, layouts_.has_weights);
      if (graph) bytes += ValueProgram(*std::move(graph), backend).planned_bytes(std::min(rows, at_once));
    }
    // Its operations share the workspace.
    ProductTiles(at_once, backend).make_operations(before.product, rows, true);
    return bytes + backend.workspace_bytes();
  }

  static std::size_t elements(const Shape& shape, std::int64_t samples) {
    return static_cast<std::size_t>(samples * shape.element_count());
  }

  // Rows of several arrays, or of another type, are taken apart; see ModelTrainable::list_columns().
  std::size_t converted(std::int64_t samples) const {
    std::size_t floats = 0;
    const auto add = [&](const RowLayout& rows, std::size_t array, DType to) {
      const ArraySpec& spec = rows.arrays()[array];
      if (rows.arrays().size() > 1 || spec.dtype != to) floats += elements(spec.shape, samples);
    };
    for (std::size_t array = 0; array < model_.inputs().size(); ++array) {
      if (array < layouts_.inputs.arrays().size()) {
        add(layouts_.inputs, array, computed_type(model_.inputs()[array].spec.dtype));
      }
    }
    for (std::size_t array = 0; array < layouts_.targets.arrays().size(); ++array) {
      add(layouts_.targets, array, DType::f32);
    }
    return bytes_of(floats);
  }

  const Replica::Context& context_;
  const Model& model_;
  const Optimizer& optimizer_;
  const Dataset& data_;
  const TrainingMemoryOptions& options_;
  const SampleLayouts& layouts_;
  const OutputEvaluation evaluation_;
  const int workers_;
};

}  // namespace

TrainingMemory training_memory(const Replica& replica, const Model& model, const Optimizer& optimizer,
                               const std::vector<LossHandle>& losses, const Dataset& data,
                               const TrainingMemoryOptions& options) {
  return TrainingMemoryPlan(*replica.shared_context(), model, optimizer, losses, data, options).run();
}

std::string training_summary(const Replica& replica, const Model& model, const Optimizer& optimizer,
                             const std::vector<LossHandle>& losses, const Dataset& data,
                             const TrainingMemoryOptions& options) {
  const TrainingMemory memory = training_memory(replica, model, optimizer, losses, data, options);
  const Replica::Context& context = *replica.shared_context();
  const auto line = [](const char* what, std::size_t bytes) {
    return fmt::format("  {:<12}{:>10.1f} MiB\n", what, static_cast<double>(bytes) / (1024 * 1024));
  };
  return model.summary() +
         fmt::format("Memory of fit() with {} and batches of {} samples in {} {}, {} at once\n", optimizer.name(),
                     data.batch_size(), context.shards, context.shards == 1 ? "shard" : "shards",
                     std::clamp(context.most_workers, 1, context.shards)) +
         line("state", memory.state) + line("gradients", memory.gradients) + line("samples", memory.samples) +
         line("passes", memory.passes) + line("saving", memory.saving) + line("total", memory.total());
}

}  // namespace holdfast
