// Each row is a group of its own here, with the weight of the group that it belongs to: so a tile may begin and end
// anywhere, whatever the weights are of. The mean over a group is taken at the end, of the sums of all tiles, which are
// added in the order of the tiles. docs/decisions/losses.md

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/nn/value_metric.h"
#include "train/step/outputs/output_sums.h"

namespace holdfast {

OutputSums::RowPrograms& OutputSums::row_programs(bool has_weights) {
  RowPrograms& programs = row_programs_[has_weights ? 1 : 0];
  // Made at the first shard with weights, or the first without them, and kept.
  for (std::size_t index = programs.size(); index < evaluation_.metrics().size(); ++index) {
    std::optional<SumsGraph> graph = evaluation_.graph_of_metric_of_rows(index, has_weights);
    programs.push_back(graph ? std::make_unique<ValueProgram>(*std::move(graph), backend_) : nullptr);
  }
  return programs;
}

// A tile has the places that the sums of a shard have, in the same order. So tiles are added place by place.
std::size_t OutputSums::places_of_tile() const {
  std::size_t places = evaluation_.first_metric();
  for (const OutputEvaluation::OutputMetric& metric : evaluation_.metrics()) places += metric.places();
  return places;
}

std::int64_t OutputSums::rows_each(bool has_weights) const {
  return evaluation_.rows_of_sample() / (has_weights ? weights_of_sample(0) : 1);
}

void OutputSums::prepare_tiles(std::int64_t samples, const Weighting& weighting, std::vector<std::uint64_t>& key) {
  weighting_ = weighting;
  tiled_samples_ = samples;
  const bool has_weights = !weighting.weights.empty();
  const std::int64_t rows = rows_of_tiles();
  const std::int64_t at_once = evaluation_.rows_at_once();
  const auto tiles = static_cast<std::size_t>((rows + at_once - 1) / at_once);
  tile_sums_.grow_to(tiles * places_of_tile());
  if (has_weights && rows_each(true) > 1) row_weights_.grow_to(static_cast<std::size_t>(rows));
  key.push_back(has_weights ? static_cast<std::uint64_t>(weights_of_sample(0)) : 0);
  // Recorded work has these addresses in it, so after an array has moved it must be recorded anew.
  key.push_back(reinterpret_cast<std::uintptr_t>(tile_sums_.data()));
  key.push_back(reinterpret_cast<std::uintptr_t>(row_weights_.data()));
  for (const auto& program : row_programs(has_weights)) {
    if (!program) continue;
    // The larger one last: its arena has room for both.
    if (rows % at_once != 0) program->prepare(rows % at_once, 1, key);
    if (rows >= at_once) program->prepare(at_once, 1, key);
  }
}

void OutputSums::begin_tiles(const Shard& shard) {
  const auto rows = static_cast<std::size_t>(rows_of_tiles());
  const auto at_once = static_cast<std::size_t>(evaluation_.rows_at_once());
  // Places that no tile writes, such as numbers of samples, are added up with the others.
  backend_.memory().fill_zero({tile_sums_.data(), (rows + at_once - 1) / at_once * places_of_tile()});
  // The kernels take one weight a row. A weight of several rows is repeated for each of them.
  const std::int64_t each = rows_each(true);
  if (shard.weights.empty() || each == 1) return;
  compute::StridedCopy repeated{.axes = 2};
  repeated.extents[0] = rows_of_tiles() / each;
  repeated.extents[1] = each;
  repeated.from_strides[0] = repeated.to_strides[1] = 1;
  repeated.to_strides[0] = each;
  backend_.array_kernels().copy(repeated, shard.weights.front(), row_weights_.data());
}

void OutputSums::run_tile(const Shard& shard, const Tile& tile) {
  const std::size_t targets = evaluation_.target_elements(0) / static_cast<std::size_t>(evaluation_.rows_of_sample());
  const SummedRows rows = {
      .groups = static_cast<std::size_t>(tile.rows),
      .output_elements = evaluation_.elements(0) / static_cast<std::size_t>(evaluation_.rows_of_sample()),
      .target_elements = targets,
      .first = tile.first};
  const bool has_weights = !shard.weights.empty();
  Arrays arrays = {.outputs = tile.outputs,
                   .targets = shard.targets.front() + static_cast<std::size_t>(tile.first) * targets};
  if (has_weights) arrays.weights = (rows_each(true) > 1 ? row_weights_.data() : shard.weights.front()) + tile.first;
  float* next = tile_sums_.data() + static_cast<std::size_t>(tile.number) * places_of_tile();
  Arrays of_loss = arrays;
  of_loss.gradient = tile.gradient;
  try {
    // The mean over the rows of a group is taken in the gradients at once, as they are not seen again. Sums get it in
    // end_tiles().
    compute_loss(0, rows, of_loss, scale_of(0) / static_cast<float>(rows_each(has_weights)), next);
  } catch (const SampleError& error) {
    const std::int64_t row = tile.first + error.sample();
    throw with_position(error.renamed(fmt::format("sample {} of {}", row, rows_of_tiles()), row), rows_of_tiles(),
                        tiled_samples_);
  }
  next += evaluation_.first_metric();
  for (std::size_t index = 0; index < evaluation_.metrics().size(); ++index) {
    const OutputEvaluation::OutputMetric& metric = evaluation_.metrics()[index];
    Arrays of_metric = arrays;
    if (metric.ignores_weights) of_metric.weights = nullptr;
    if (ValueProgram* const program = row_programs(has_weights)[index].get()) {
      // It was prepared for tiles of each size, so this only chooses one.
      unused_key_.clear();
      program->prepare(tile.rows, 1, unused_key_);
      program->run(
          {.outputs = of_metric.outputs, .targets = of_metric.targets, .weights = of_metric.weights, .sums = next});
    } else {
      compute_metric(index, rows, of_metric, next);
    }
    next += metric.places();
  }
}

void OutputSums::divide_sums(std::size_t count, std::int64_t divisor, float* sums) {
  // A division by 1 changes no bit.
  if (divisor == 1) return;
  compute::ElementProgram program;
  program.instruction_count = program.input_count = program.constant_count = program.output_count = 1;
  program.instructions[0].function = compute::ElementFunction::divide;
  program.instructions[0].operands[1] = {.kind = compute::ElementOperand::Kind::constant};
  program.constants[0] = static_cast<float>(divisor);
  compute::ElementShape shape;
  shape.extents[0] = static_cast<std::int64_t>(count);
  shape.strides[0][0] = 1;
  const float* const from = sums;
  backend_.array_kernels().elements(program, shape, {&from, 1}, {&sums, 1});
}

void OutputSums::end_tiles(const Shard& shard, float* sums) {
  const std::int64_t at_once = evaluation_.rows_at_once();
  // tile_sums_ is [tiles, places]: the first axis is reduced, in the order of the tiles.
  backend_.array_kernels().reduce({.kind = compute::ReductionKind::sum,
                                   .reduced = (rows_of_tiles() + at_once - 1) / at_once,
                                   .inner = static_cast<std::int64_t>(places_of_tile())},
                                  tile_sums_.data(), sums);
  const bool has_weights = !shard.weights.empty();
  divide_sums(1, rows_each(has_weights), sums);
  float* next = sums + evaluation_.first_metric();
  for (const OutputEvaluation::OutputMetric& metric : evaluation_.metrics()) {
    const ValueMetric* const of_values = metric.metric->as_values();
    // A metric that adds elements has no mean over positions. One that ignores weights counts whole samples.
    const bool is_mean = of_values == nullptr || !of_values->adds_elements();
    if (is_mean) divide_sums(metric.sums, rows_each(has_weights && !metric.ignores_weights), next);
    next += metric.places();
  }
  if (has_weights && !weighting_.has_own_divisors) sum_weights(shard, next);
}

}  // namespace holdfast
