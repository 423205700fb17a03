#pragma once

// Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024, with the scale of Liu et al.,
// "Muon is Scalable for LLM Training", 2025, section 2.2; so keras.optimizers.Muon). For a matrix w with gradient g and
// learning rate lr:
//
//   m  = momentum m + g
//   u  = g + momentum m,  or m without nesterov
//   x  = u / (|u| + 1e-7), then ns_steps times:  A = x x^T,  x = a x + (b A + c A A) x
//   w -= lr x rms_rate sqrt(max(rows, columns)),  without the last two factors if there is no rms_rate
//
// where x is transposed if the matrix has more rows than columns, and a, b, c are muon_a, muon_b and muon_c. So all
// singular values of the step are about the same.
//
// Arrays with another number of axes are updated by Adam (adam.h) with its own options. So are embeddings, and those
// that `adam_arrays` names, which should be the output layer of the model.
//
//   Muon{{.learning_rate = 0.01F, .adam_arrays = {"output"}}}
//
// The steps of an array are computed by one thread, and threads share the arrays of a model, so the bits are the same
// on any number of replicas and threads. On a device, the host computes with copies of the arrays. A slot holds v for
// all arrays, also for those that do not need it.

#include <cstdint>
#include <memory>
#include <optional>

#include "holdfast/optim/learning_rate.h"
#include "holdfast/optim/optimizer.h"

namespace holdfast {

// The ranges are checked by the constructor of Muon. A savepoint records all options, and a run refuses to resume with
// other ones (Optimizer::configuration()).
struct MuonOptions {
  LearningRate learning_rate = 1e-3F;      // not negative
  float adam_beta_1 = 0.9F;                // in [0, 1)
  float adam_beta_2 = 0.999F;              // in [0, 1)
  float adam_weight_decay = 4e-3F;         // not negative: as weight_decay, for the arrays that Adam updates
  float epsilon = 1e-7F;                   // positive; of Adam
  float weight_decay = 4e-3F;              // not negative: before each step, w -= w lr weight_decay
  std::vector<std::string> adam_arrays{};  // patterns of parameters, as in parameter_rules.h; Keras: exclude_layers
  bool exclude_embeddings = true;          // Adam updates arrays whose names have "embedding" in them
  // The polynomial of the iteration; finite:
  float muon_a = 3.4445F;                // factor of x
  float muon_b = -4.775F;                // factor of A x
  float muon_c = 2.0315F;                // factor of A A x
  float adam_lr_ratio = 1;               // not negative: a factor of Adam's learning rate
  float momentum = 0.95F;                // in [0, 1)
  std::int64_t ns_steps = 5;             // at least 0
  bool nesterov = true;                  // looks ahead along the momentum
  std::optional<float> rms_rate = 0.2F;  // positive; nothing: the step has no scale
  // Gradient clipping, before slots see the gradient: of each element, of each array, of all arrays together. At most
  // one of these. See gradient_clipping.h.
  std::optional<float> clip_value{};
  std::optional<float> clip_norm{};
  std::optional<float> global_clip_norm{};
  // Patterns of parameters with other rules. See parameter_rules.h.
  std::vector<std::string> exclude_from_weight_decay{};
  std::vector<LearningRateFactor> learning_rate_factors{};
  std::vector<WeightDecayFactor> weight_decay_factors{};  // see parameter_rules.h
  // A moving average of each parameter. See weight_average.h.
  bool use_ema = false;
  float ema_momentum = 0.99F;                // in [0, 1]
  std::int64_t ema_overwrite_frequency = 0;  // updates from one overwriting to the next; 0: never
};

class Muon : public Optimizer {
 public:
  // Both throw Error{invalid_argument} for an option out of its range.
  explicit Muon(const MuonOptions& options = {});
  explicit Muon(const LearningRate& learning_rate) : Muon(MuonOptions{.learning_rate = learning_rate}) {}

  std::string name() const override { return "muon"; }
  // What Optimizer promises, with the formulas above.
  std::string configuration() const override;
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<Muon>(*this); }
  std::optional<LearningRate> learning_rate() const override { return options_.learning_rate; }
  std::unique_ptr<Optimizer> with_learning_rate(const LearningRate& rate) const override;
  GradientClipping clipping() const override;
  ParameterRules parameter_rules() const override;
  WeightAverage weight_average() const override;
  std::unique_ptr<Optimizer> with_weight_decay_times(float factor) const override;
  // "momentum" (m, also Adam's) and "velocity" (v of Adam; 0 for matrices that Muon updates).
  std::vector<std::string> slot_names() const override;
  bool needs_whole_arrays() const override { return true; }
  // Adam, whatever the array is. A Trainer calls update_array().
  void update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
              std::span<const std::span<float>> slots) const override;
  void update_array(const ParameterArray& array, std::int64_t step, std::span<float> parameters,
                    std::span<const float> gradients, std::span<const std::span<float>> slots) const override;

 private:
  class Workspaces;
  bool is_for_adam(const ParameterArray& array) const;

  MuonOptions options_;
  std::shared_ptr<Workspaces> workspaces_;  // of matrices, which copies of the optimizer share
};

}  // namespace holdfast
