#pragma once

// Connectionist temporal classification (Graves et al., 2006), as keras.losses.CTC defines it (Keras 3): the target is
// a row of labels, shorter than the steps of the output, and nobody says at which step each label is. The labels of
// speech or handwriting are letters.
//
//   Trainer trainer(replica, model, Adam{}, losses::CTC{{.classes = 29, .most_labels = 32}});
//
// An output is [steps, classes] of scores before a softmax; class 0 is the blank. A target is [most_labels]: class
// numbers from 1 on, and then zeros. An output spells its labels when equal neighbours among the steps are one and
// blanks are left out. The loss of a sample is -log of the probability of all ways to spell the target. It is not
// divided by the number of steps.
//
// The loss takes weights of samples. It is computed by the host, in double, for models on devices too.

#include <cstdint>

#include "holdfast/nn/loss.h"

namespace holdfast::losses {

struct CTCOptions {
  std::int64_t classes = 0;            // with the blank, at least 2; as many as the last axis of the output has
  std::int64_t most_labels = 0;        // of a target, at least 1
  bool accept_any_activation = false;  // as in CrossentropyOptions; not a part of configuration()
};

class CTC final : public Loss {
 public:
  // Throws Error{invalid_argument} for options out of range.
  explicit CTC(CTCOptions options);

  // What Loss promises.
  std::string name() const override { return "ctc"; }
  std::string configuration() const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<CTC>(*this); }
  // [most_labels]. Throws Error{invalid_argument} unless the output is [steps, classes].
  Shape target_shape(const Shape& output) const override;
  void check_last_activation(std::optional<Activation> last) const override;
  // Throws Error{invalid_argument} that names the sample for a label that is not a class, a label after a zero, and
  // labels that do not fit into the steps: each needs one, and between two equal ones there is a blank.
  float evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples, float scale,
                 std::span<float> gradient) const override;

 private:
  CTCOptions options_;
};

}  // namespace holdfast::losses
