#pragma once

// What an optimizer does otherwise for some arrays of parameters. All optimizers of Holdfast have these options:
//
//   AdamW{{.exclude_from_weight_decay = {"*/bias", "*norm*"},
//          .learning_rate_factors = {{"base/*", 0.1F}},
//          .weight_decay_factors = {{"head/*", 10.0F}}}}
//
// A pattern stands for the arrays whose names it matches, "base/dense/kernel", and for those of layers whose names it
// matches, "base/dense". In it, * stands for any characters, also none and also "/", and ? for one. A Trainer refuses a
// pattern that matches nothing (Error{not_found}).
//
// The arrays are still updated in one pass, each element once, with the bits that an optimizer with such options alone
// computes for them: of the learning rate or the weight decay times the factor, rounded to float, or without weight
// decay.

#include <string>
#include <vector>

namespace holdfast {

// A factor of the learning rate for some parameters.
struct LearningRateFactor {
  std::string pattern;  // of names of parameters, as above
  float factor = 1;     // not negative; with 0 the arrays stay as they are
};

// A factor of the weight decay for some parameters.
struct WeightDecayFactor {
  std::string pattern;  // of names of parameters, as above
  float factor = 1;     // not negative; with 0 the arrays do not decay
};

struct ParameterRules {
  // Patterns of arrays that weight decay leaves alone, as exclude_from_weight_decay() of Keras.
  std::vector<std::string> exclude_from_weight_decay{};
  // If several patterns match one array, the last one counts.
  std::vector<LearningRateFactor> learning_rate_factors{};
  // The last one counts here too. An array that exclude_from_weight_decay matches does not decay.
  std::vector<WeightDecayFactor> weight_decay_factors{};
  // Patterns that the optimizer itself looks at, such as MuonOptions::adam_arrays. A Trainer only checks that each of
  // them matches something.
  std::vector<std::string> patterns_of_optimizer{};

  // Whether all parameters have the same rules.
  bool is_empty() const {
    return exclude_from_weight_decay.empty() && learning_rate_factors.empty() && weight_decay_factors.empty();
  }
};

}  // namespace holdfast
