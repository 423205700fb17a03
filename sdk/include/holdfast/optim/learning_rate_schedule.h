#pragma once

// A learning rate that changes during training. It is a pure function of the number of updates, and so
// of the training state: a run that recovers from a failure has the rate that it would have had.
// Schedules hold only options; any thread may use the same one. To write your own:
//
//   class Halving final : public LearningRateSchedule {
//    public:
//     std::string configuration() const override { return R"({"kind":"halving"})"; }
//     std::unique_ptr<LearningRateSchedule> clone() const override { return std::make_unique<Halving>(*this); }
//     float rate_after(std::int64_t updates) const override {
//       return std::ldexp(0.1F, -static_cast<int>(updates / 1000));
//     }
//   };

#include <cstdint>
#include <memory>
#include <string>

namespace holdfast {

class LearningRateSchedule {
 public:
  virtual ~LearningRateSchedule() = default;

  // The kind and all options as JSON. It becomes part of the configuration of the optimizer, and a run
  // refuses to resume with another one. Equal schedules must give equal texts, on every machine.
  virtual std::string configuration() const = 0;
  // An independent copy.
  virtual std::unique_ptr<LearningRateSchedule> clone() const = 0;

  // The rate of the next update after `updates` updates. 0 asks for the rate of the first update, as in the schedules
  // of Keras. Must return a finite number of at least 0, and the same bits for the same argument.
  virtual float rate_after(std::int64_t updates) const = 0;

 protected:
  LearningRateSchedule() = default;
  LearningRateSchedule(const LearningRateSchedule&) = default;
  LearningRateSchedule& operator=(const LearningRateSchedule&) = default;
};

}  // namespace holdfast
