#pragma once

// Optimizers of ours from the options of Keras's, as scripts/tests/optimizer_cases.py writes them.

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "holdfast/holdfast.h"

namespace holdfast {

// Takes options of the case, and fails for one that nobody asked for.
class CaseOptions {
 public:
  explicit CaseOptions(nlohmann::json options) : options_(std::move(options)) {}
  ~CaseOptions() { EXPECT_TRUE(options_.empty()) << options_; }

  template <class Type>
  void take(const char* name, Type& option) {
    if (!options_.contains(name)) return;
    option = options_[name].get<Type>();
    options_.erase(name);
  }
  void take(const char* name, std::optional<float>& option) {
    if (!options_.contains(name)) return;
    option.reset();
    if (!options_[name].is_null()) option = options_[name].get<float>();
    options_.erase(name);
  }
  template <class Options>
  void take_common(Options& options) {
    float rate = 0;
    take("learning_rate", rate);
    options.learning_rate = rate;
    take("weight_decay", options.weight_decay);
    take("use_ema", options.use_ema);
    take("ema_momentum", options.ema_momentum);
    take("ema_overwrite_frequency", options.ema_overwrite_frequency);
  }

 private:
  nlohmann::json options_;
};

template <class Kind, class Options>
std::unique_ptr<Optimizer> with_betas(CaseOptions& of, Options options) {
  of.take_common(options);
  of.take("beta_1", options.beta_1);
  of.take("beta_2", options.beta_2);
  if constexpr (requires { options.epsilon; }) of.take("epsilon", options.epsilon);
  if constexpr (requires { options.amsgrad; }) of.take("amsgrad", options.amsgrad);
  if constexpr (requires { options.warmup_steps; }) of.take("warmup_steps", options.warmup_steps);
  return std::make_unique<Kind>(options);
}

inline std::unique_ptr<Optimizer> ftrl_of_case(CaseOptions& of) {
  FtrlOptions options;
  of.take_common(options);
  of.take("learning_rate_power", options.learning_rate_power);
  of.take("initial_accumulator_value", options.initial_accumulator_value);
  of.take("l1_regularization_strength", options.l1_regularization_strength);
  of.take("l2_regularization_strength", options.l2_regularization_strength);
  of.take("l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength);
  of.take("beta", options.beta);
  return std::make_unique<Ftrl>(options);
}

inline std::unique_ptr<Optimizer> muon_of_case(CaseOptions& of, const nlohmann::json& one) {
  MuonOptions options;
  of.take_common(options);
  of.take("adam_beta_1", options.adam_beta_1);
  of.take("adam_beta_2", options.adam_beta_2);
  of.take("adam_weight_decay", options.adam_weight_decay);
  of.take("epsilon", options.epsilon);
  of.take("muon_a", options.muon_a);
  of.take("muon_b", options.muon_b);
  of.take("muon_c", options.muon_c);
  of.take("adam_lr_ratio", options.adam_lr_ratio);
  of.take("momentum", options.momentum);
  of.take("ns_steps", options.ns_steps);
  of.take("nesterov", options.nesterov);
  of.take("rms_rate", options.rms_rate);
  // Adam updates such an array of Keras, also where a test keeps its elements as a matrix.
  if (one["shape"].size() < 2) options.adam_arrays = {"*"};
  return std::make_unique<Muon>(options);
}

inline std::unique_ptr<Optimizer> adafactor_of_case(CaseOptions& of) {
  AdafactorOptions options;
  of.take_common(options);
  of.take("beta_2_decay", options.beta_2_decay);
  of.take("epsilon_1", options.epsilon_1);
  of.take("epsilon_2", options.epsilon_2);
  of.take("clip_threshold", options.clip_threshold);
  return std::make_unique<Adafactor>(options);
}

// The optimizer of a case of scripts/tests/optimizer_cases.py.
inline std::unique_ptr<Optimizer> optimizer_of_case(const nlohmann::json& one) {
  const auto kind = one["kind"].get<std::string>();
  CaseOptions of(one["options"]);
  if (kind == "adamax") return with_betas<Adamax>(of, AdamaxOptions{});
  if (kind == "lamb") return with_betas<Lamb>(of, LambOptions{});
  if (kind == "nadam") return with_betas<Nadam>(of, NadamOptions{});
  if (kind == "lion") return with_betas<Lion>(of, LionOptions{});
  if (kind == "adam") return with_betas<Adam>(of, AdamOptions{});
  if (kind == "adamw") return with_betas<AdamW>(of, AdamWOptions{});
  if (kind == "schedule_free_adamw") return with_betas<ScheduleFreeAdamW>(of, ScheduleFreeAdamWOptions{});
  if (kind == "ftrl") return ftrl_of_case(of);
  if (kind == "muon") return muon_of_case(of, one);
  if (kind == "adafactor") return adafactor_of_case(of);
  if (kind == "sgd") {
    SGDOptions options;
    of.take_common(options);
    of.take("momentum", options.momentum);
    of.take("nesterov", options.nesterov);
    return std::make_unique<SGD>(options);
  }
  if (kind == "adagrad") {
    AdagradOptions options;
    of.take_common(options);
    of.take("initial_accumulator_value", options.initial_accumulator_value);
    of.take("epsilon", options.epsilon);
    return std::make_unique<Adagrad>(options);
  }
  if (kind == "adadelta") {
    AdadeltaOptions options;
    of.take_common(options);
    of.take("rho", options.rho);
    of.take("epsilon", options.epsilon);
    return std::make_unique<Adadelta>(options);
  }
  RMSpropOptions options;
  of.take_common(options);
  of.take("rho", options.rho);
  of.take("momentum", options.momentum);
  of.take("epsilon", options.epsilon);
  of.take("centered", options.centered);
  return std::make_unique<RMSprop>(options);
}

}  // namespace holdfast
