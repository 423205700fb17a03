#pragma once

// Holdfast's own models as a Trainable: a Model with optimizer, loss and metrics. Parameters, gradients and each
// optimizer slot have the same arena layout.

#include <memory>
#include <optional>
#include <vector>

#include "compute/array_kernels.h"
#include "compute/growing_floats.h"
#include "holdfast/nn/model.h"
#include "holdfast/nn/regularizer.h"
#include "holdfast/optim/optimizer.h"
#include "holdfast/train/trainable.h"
#include "nn/model/model_weights.h"
#include "nn/program/model_program.h"
#include "optim/gradient_clipper.h"
#include "train/step/grouped_update.h"
#include "train/step/outputs/output_sums.h"
#include "train/step/outputs/output_tiles.h"

namespace holdfast {

// That of rows without a layout: they are one f32 array of any shape.
const RowLayout& plain_row_layout();

class ModelTrainable final : public Trainable {
 public:
  // Throws Error{invalid_argument} if the losses do not fit the model's outputs, or the options of clipping contradict
  // each other.
  ModelTrainable(const Model& model, const Optimizer& optimizer, std::vector<LossHandle> losses,
                 const std::vector<MetricHandle>& metrics);

  // The model of the constructor, whatever was compiled since.
  std::string graph() const override { return given_.graph(); }
  std::string configuration() const override;
  std::string arithmetic() const override;
  Shape feature_shape() const override { return model_.inputs().front().spec.shape; }
  Shape target_shape() const override { return evaluation_.targets().front().shape; }
  Shape output_shape() const override { return model_.outputs().front().spec.shape; }
  std::vector<ArraySpec> inputs() const override;
  std::vector<ArraySpec> targets() const override { return evaluation_.targets(); }
  std::vector<ArraySpec> outputs() const override;
  bool converts_targets() const override { return true; }
  void check_sample_weights(const ArraySpec& weights) const override { evaluation_.check_weights(weights); }
  std::size_t divisor_count(const RowLayout* targets, bool has_sample_weights) const override;
  void sum_divisors(const ShardBatch& batch, std::span<float> divisors) override;
  void prepare(const Workers& workers) override;
  bool reads_samples_on_device() const override { return true; }
  void initialize(std::uint64_t seed) override;
  std::vector<StateSpan> state() override;
  std::vector<std::string> sum_names() const override { return evaluation_.sum_names(); }
  std::vector<std::string> result_names() const override { return evaluation_.result_names(); }
  std::optional<Best> best_of(const std::string& result_name) const override {
    return evaluation_.best_of(result_name);
  }
  std::vector<double> results(std::span<const double> sums, double weight) const override {
    return evaluation_.results(sums, weight);
  }
  std::vector<double> results_by_divisors(std::span<const double> sums,
                                          std::span<const double> divisors) const override {
    return evaluation_.results_by_divisors(sums, divisors);
  }
  std::size_t gradient_count() const override;
  std::size_t most_gradients() const override { return most_gradients_; }
  void lay_out(const std::string& training) override;
  void compute_gradients(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) override;
  void compute_sums(const ShardBatch& batch, std::span<float> sums) override;
  void predict(const ShardBatch& batch, std::span<float> outputs) override;
  std::optional<float> learning_rate(std::int64_t update) const override;
  void check_learning_rate(float rate) const override;
  // Throws Error unless updates may have another rate than the optimizer's; `who` begins the sentence.
  void require_changeable_rate(const char* who, std::optional<float> rate) const;
  double penalty() override;
  bool keeps_averages() const override { return optimizer_->weight_average().is_kept; }
  void read_averages(bool averages) override { reads_averages_ = averages; }
  void apply_update(const Update& update) override;
  void on_fit_end() override;
  MemorySpace& memory() override;

  // For Trainer::compile(). The data of its record (CallRecord); throws Error{invalid_argument} for a model of other
  // layers and for an optimizer that cannot compute.
  std::string describe_training(const Model& model, const Optimizer& optimizer) const;
  // Lays the state out for a compile() that happens now: the weights stay, the slots are those of `optimizer` at first.
  void change_training(const std::string& training, const Optimizer& optimizer);
  // A copy of the model that is trained at present, with weights of its own: those that predict() reads.
  Model present_model();
  // Its layers, without these weights.
  const Model& model() const { return model_; }
  // From now on updates are those of this optimizer, for which the state is laid out.
  void train_with(const Model& model, const Optimizer& optimizer);

 private:
  // Copies on the device of what the host's memory holds of a shard.
  struct DeviceShard {
    compute::GrowingFloats features;
    compute::GrowingFloats targets;
    compute::GrowingFloats sums;  // followed by whether a gradient is not finite
  };
  // One of the arrays that a row is taken apart into; no conversion if rows are the array.
  struct Column {
    const float* array = nullptr;
    const float* rows = nullptr;
    std::optional<compute::RowConversion> conversion{};
  };
  // A shard in the memory in which the worker computes.
  struct Columns {
    std::vector<Column> inputs;
    std::vector<Column> targets;
    std::vector<Column> weights;          // for each output, or of all; empty without weights
    std::optional<Shape> weights_read{};  // of a row; what `weighting` was made for
    OutputSums::Weighting weighting{};
  };
  // The lists of a shard. They keep their memory from shard to shard, so that a step allocates nothing.
  struct ShardLists {
    Columns columns{};
    OutputSums::Shard evaluated{};
    ModelProgram::BackwardArrays arrays{};
    std::vector<std::uint64_t> key{};
    std::vector<std::function<void()>> parts{};
    std::vector<std::size_t> places{};   // find_array_places()
    std::vector<std::size_t> offsets{};  // find_weight_offsets()
  };
  struct WorkerState {
    std::unique_ptr<ModelProgram> program;
    std::unique_ptr<OutputSums> sums;
    compute::GrowingFloats output_gradients;  // [samples, output shape], one output after another
    compute::GrowingFloats converted;         // arrays that rows were taken apart into
    std::unique_ptr<OutputTiles> tiles;       // null where outputs are computed whole
    std::optional<DeviceShard> device_shard{};
    ShardLists lists{};
  };

  void allocate();
  void begin_optimizer();
  // What the public functions do, with errors of samples as they are numbered in the shard.
  void compute_gradients_of(const ShardBatch& batch, GradientSink& sink, std::span<float> sums);
  void compute_sums_of(const ShardBatch& batch, std::span<float> sums);
  void predict_samples(const ShardBatch& batch, std::span<float> outputs);
  void initialize_slot(std::size_t slot, const Optimizer& optimizer);
  // Queues the parts of a shard's passes, or has the device repeat its recording of them under the key. Calls
  // `after_part` after each part.
  void repeat(WorkerState& state, const ShardBatch& batch, const std::function<void(std::size_t part)>& after_part);
  WorkerState& worker(const ShardBatch& batch);
  // Lists where the arrays of a shard lie, and how they get there. Moves the rows to the device; take_apart() does the
  // rest.
  void list_columns(WorkerState& state, const ShardBatch& batch) const;
  // To the arrays that the columns are converted to, which have `converted` floats altogether.
  static void give_places(WorkerState& state, std::size_t converted);
  void take_apart(WorkerState& state) const;
  // Makes what losses and metrics of the shard in the lists need, and adds to their key.
  static void prepare_sums(WorkerState& state, std::int64_t samples, bool has_gradients);
  // output_divisors.cpp
  // Where the weights of each output begin in those of a row, for weights of these shapes. Its target is the one at
  // its place in the row.
  static void find_weight_offsets(std::span<const Shape> shapes, std::span<const std::size_t> places,
                                  std::vector<std::size_t>& offsets);
  void set_weighting(Columns& columns, const ShardBatch& batch) const;
  void queue_to_loss(WorkerState& state, const ShardBatch& batch, std::span<float> sums);
  void compute_no_samples(const ShardBatch& batch, GradientSink& sink, std::span<float> sums);
  // Computes losses and metrics, and the gradients of the losses if `has_gradients`.
  void evaluate(WorkerState& state, const ShardBatch& batch, const ModelProgram::Outputs& outputs, bool has_gradients,
                std::span<float> sums) const;
  void place_output_gradients(WorkerState& state, std::int64_t samples) const;
  // The one of the configuration, with the learning rate that a callback set.
  const Optimizer& optimizer_of(const Update& update);
  // Whether the state has a slot of averages.
  bool has_averages() const { return !slot_names_.empty() && slot_names_.back() == kAverageSlot; }
  // What inference reads: the parameters, or their averages.
  std::span<const float> weights() const;
  // The weights and buffers in the layout of `model`, on the host.
  ModelWeights::Values values_for(const Model& model);
  // The sum of gradients as the optimizer takes it: divided by the weights of the samples, and clipped.
  std::span<const float> final_gradients(const Update& update);

  // model_penalties.cpp
  // Lists the penalties of model_, and compiles their gradients.
  void prepare_penalties();
  // Adds the gradients of the penalties to own_gradients_, or to a copy of `gradients` there. Returns the sum.
  std::span<const float> with_penalties(std::span<const float> gradients);
  // Keeps the arrays that have a constraint in bounds.
  void constrain_parameters();

  // Waits for the shard's sums. Returns false if the device has looked for gradients that are not finite, and found
  // one.
  bool fetch_sums(WorkerState& state, const ShardBatch& batch, std::span<float> sums) const;

  Model given_;     // of the constructor
  Model model_;     // the same with the layers frozen that the state is laid out for
  Model compiled_;  // of the last compile(), which gets the weights, too; else that of the constructor
  const bool has_given_weights_;
  const std::shared_ptr<const Optimizer> given_optimizer_;
  std::shared_ptr<const Optimizer> optimizer_;
  const std::size_t most_gradients_;
  // What the state is laid out for; see lay_out().
  std::string training_;
  std::vector<std::string> slot_names_;
  std::int64_t first_step_ = 0;  // of the run, at which the optimizer began
  // The same with the learning rate of the last update that had one of a callback. Each update says its own.
  struct ChangedOptimizer {
    float rate = 0;
    std::unique_ptr<Optimizer> optimizer;
  };
  ChangedOptimizer changed_optimizer_;
  const OutputEvaluation evaluation_;

  std::vector<WorkerState> workers_;
  bool has_told_obstacle_ = false;  // the log has said why the device does not record
  // An array in memory(), made by the first prepare().
  struct Arena {
    std::shared_ptr<float[]> floats;
    std::size_t size = 0;

    std::span<float> span() const { return {floats.get(), size}; }
  };
  Arena parameters_;                          // of model_.parameters()
  Arena buffers_;                             // of model_.buffers()
  std::vector<Arena> slots_;                  // of model_.parameters(), one for each of slot_names_
  std::vector<std::span<float>> slot_spans_;  // those of the optimizer's own slots, without averages
  std::unique_ptr<Optimizer> averaging_;      // updates averages as if they were parameters; null without averages
  bool reads_averages_ = false;               // not part of the state: no update depends on it
  struct Penalty {
    std::size_t entry = 0;
    Regularizer regularizer;
    compute::ElementProgram gradient{};  // inputs: the gradient and the parameter; output: the sum with the penalty's
  };
  std::vector<Penalty> penalties_;
  std::optional<GradientClipper> clipper_;
  std::optional<GroupedUpdate> grouped_;  // where the optimizer has rules for single arrays
  Arena own_gradients_;                   // divided by the weights of the samples, or with those of the penalties
};

}  // namespace holdfast
