// Muon (Jordan et al., 2024) for matrices, and Adam for all other arrays, in the form that Keras has given it. Matrices
// need products that are made for one shape, and memory. Several threads update arrays at once, so each of them borrows
// a workspace of the shape and gives it back. There are as many as were ever in use at once.

#include "holdfast/optim/muon.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include "core/json_object.h"
#include "core/name_pattern.h"
#include "holdfast/base/error.h"
#include "optim/adam_pass.h"
#include "optim/check_option.h"
#include "optim/clipping_options.h"
#include "optim/newton_schulz.h"
#include "optim/rule_options.h"
#include "optim/update_pass.h"

namespace holdfast {
namespace {

// Keras compares the path of a variable in lower case, so both exclude the same arrays of a model.
bool names_an_embedding(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.find("embedding") != std::string::npos;
}

}  // namespace

class Muon::Workspaces {
 public:
  using Extents = std::pair<std::int64_t, std::int64_t>;

  // What a matrix needs in a step.
  struct Workspace {
    explicit Workspace(const Extents& extents)
        : iteration(extents.first, extents.second),
          direction(static_cast<std::size_t>(extents.first * extents.second)) {}

    NewtonSchulz iteration;
    std::vector<float> direction;
  };

  std::unique_ptr<Workspace> take(const Extents& extents) {
    {
      const std::lock_guard lock(mutex_);
      std::vector<std::unique_ptr<Workspace>>& free = free_[extents];
      if (!free.empty()) {
        std::unique_ptr<Workspace> workspace = std::move(free.back());
        free.pop_back();
        return workspace;
      }
    }
    // Made without the lock: it allocates matrices and prepares three products, and other threads need not wait for
    // that.
    return std::make_unique<Workspace>(extents);
  }

  void give_back(const Extents& extents, std::unique_ptr<Workspace> workspace) {
    const std::lock_guard lock(mutex_);
    free_[extents].push_back(std::move(workspace));
  }

 private:
  std::mutex mutex_;
  std::map<Extents, std::vector<std::unique_ptr<Workspace>>> free_;  // guarded by mutex_
};

Muon::Muon(const MuonOptions& options) : options_(options), workspaces_(std::make_shared<Workspaces>()) {
  check_rule_options(name(), options);
  const auto check = [this](const char* option, float value, bool is_in_range, const char* range) {
    check_option(name(), option, value, is_in_range, range);
  };
  check("adam_beta_1", options.adam_beta_1, options.adam_beta_1 >= 0 && options.adam_beta_1 < 1, "in [0, 1)");
  check("adam_beta_2", options.adam_beta_2, options.adam_beta_2 >= 0 && options.adam_beta_2 < 1, "in [0, 1)");
  check("adam_weight_decay", options.adam_weight_decay, options.adam_weight_decay >= 0, "not negative");
  check("epsilon", options.epsilon, options.epsilon > 0, "positive");
  // Any sign and size may be right for the factors of the polynomial. They need only be finite.
  check("muon_a", options.muon_a, true, "a number");
  check("muon_b", options.muon_b, true, "a number");
  check("muon_c", options.muon_c, true, "a number");
  check("adam_lr_ratio", options.adam_lr_ratio, options.adam_lr_ratio >= 0, "not negative");
  check("momentum", options.momentum, options.momentum >= 0 && options.momentum < 1, "in [0, 1)");
  check_count(name(), "ns_steps", options.ns_steps, 0);
  const float rms_rate = options.rms_rate.value_or(1);
  check("rms_rate", rms_rate, rms_rate > 0, "positive");
}

// A savepoint holds this text, and a resume compares it. So its members and their order are data.
std::string Muon::configuration() const {
  JsonObject object(name());
  object.value("learning_rate", options_.learning_rate.configuration())
      .number("adam_beta_1", options_.adam_beta_1)
      .number("adam_beta_2", options_.adam_beta_2)
      .number("adam_weight_decay", options_.adam_weight_decay)
      .number("epsilon", options_.epsilon)
      .number("weight_decay", options_.weight_decay)
      .texts("adam_arrays", options_.adam_arrays)
      .boolean("exclude_embeddings", options_.exclude_embeddings)
      .number("muon_a", options_.muon_a)
      .number("muon_b", options_.muon_b)
      .number("muon_c", options_.muon_c)
      .number("adam_lr_ratio", options_.adam_lr_ratio)
      .number("momentum", options_.momentum)
      .integer("ns_steps", options_.ns_steps)
      .boolean("nesterov", options_.nesterov)
      .number_or_null("rms_rate", options_.rms_rate);
  add_clipping(object, clipping());
  add_rules(object, rules_of(options_));
  add_average(object, weight_average());
  return object.text();
}

std::unique_ptr<Optimizer> Muon::with_learning_rate(const LearningRate& rate) const {
  return with_rate<Muon>(options_, rate);
}

GradientClipping Muon::clipping() const {
  return clipping_of(options_);
}

ParameterRules Muon::parameter_rules() const {
  // As the other patterns, these must match an array of the model. They are refused together when a Trainer is made.
  ParameterRules rules = rules_of(options_);
  rules.patterns_of_optimizer = options_.adam_arrays;
  return rules;
}

WeightAverage Muon::weight_average() const {
  return average_of(options_);
}

std::unique_ptr<Optimizer> Muon::with_weight_decay_times(float factor) const {
  // with_decay_times() changes `weight_decay` alone. Arrays that Adam updates decay by an option of their own.
  MuonOptions options = options_;
  options.adam_weight_decay *= factor;
  return with_decay_times<Muon>(options, factor);
}

std::vector<std::string> Muon::slot_names() const {
  return {"momentum", "velocity"};
}

// Depends on options, name and shape alone. So an array has the same rule in each step and on each rank.
bool Muon::is_for_adam(const ParameterArray& array) const {
  if (array.shape->rank() != 2) return true;
  if (options_.exclude_embeddings && names_an_embedding(array.name)) return true;
  return std::ranges::any_of(options_.adam_arrays,
                             [&](const std::string& pattern) { return matches_array(pattern, array.name); });
}

void Muon::update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
                  std::span<const std::span<float>> slots) const {
  // `adam_lr_ratio` is a factor of the step and not of the decay, as in Keras.
  const float rate = options_.learning_rate.of_update(step);
  const compute::AdamStep numbers = adam_step(step, {.learning_rate = rate * options_.adam_lr_ratio,
                                                     .beta_1 = options_.adam_beta_1,
                                                     .beta_2 = options_.adam_beta_2,
                                                     .epsilon = options_.epsilon,
                                                     .kept = kept_after_decay(options_.adam_weight_decay, rate)});
  run_pass({numbers}, {parameters, gradients, slots});
}

void Muon::update_array(const ParameterArray& array, std::int64_t step, std::span<float> parameters,
                        std::span<const float> gradients, std::span<const std::span<float>> slots) const {
  if (is_for_adam(array)) return update(step, parameters, gradients, slots);
  HOLDFAST_ASSERT(step >= 1 && slots.size() == 2 && gradients.size() == parameters.size());
  const std::int64_t rows = array.shape->extents()[0], columns = array.shape->extents()[1];
  const auto elements = static_cast<std::size_t>(array.shape->element_count());
  // The ranges may be longer than the array. What follows is padding, which is neither read nor written.
  HOLDFAST_ASSERT(parameters.size() >= elements && slots[0].size() == parameters.size());
  const float rate = options_.learning_rate.of_update(step);
  const float kept = kept_after_decay(options_.weight_decay, rate);
  // Liu et al., 2025, section 2.2: the entries of an orthogonal matrix shrink with its longer side. Updates of all
  // shapes are to have the size that Adam's have.
  const double scale =
      options_.rms_rate ? *options_.rms_rate * std::sqrt(static_cast<double>(std::max(rows, columns))) : 1.0;
  const auto change = static_cast<float>(rate * scale);

  std::unique_ptr<Workspaces::Workspace> workspace = workspaces_->take({rows, columns});
  std::vector<float>& direction = workspace->direction;
  const std::span<float> momenta = slots[0];
  // The gradient is not multiplied by 1 - momentum: the iteration divides by the norm of the direction anyway.
  for (std::size_t i = 0; i < elements; ++i) {
    momenta[i] = momenta[i] * options_.momentum + gradients[i];
    direction[i] = options_.nesterov ? gradients[i] + momenta[i] * options_.momentum : momenta[i];
  }
  workspace->iteration.run(
      {.a = options_.muon_a, .b = options_.muon_b, .c = options_.muon_c, .steps = options_.ns_steps}, direction);
  for (std::size_t i = 0; i < elements; ++i) parameters[i] = parameters[i] * kept - direction[i] * change;
  workspaces_->give_back({rows, columns}, std::move(workspace));
}

}  // namespace holdfast
