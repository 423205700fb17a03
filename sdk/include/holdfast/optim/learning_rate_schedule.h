#pragma once

// A learning rate that changes while training goes on: a pure function of how many updates there were, so of the
// training state, whatever failed in between. Schedules hold options only: any thread may use the same one.

#include <cstdint>
#include <memory>
#include <string>

namespace holdfast {

class LearningRateSchedule {
 public:
  virtual ~LearningRateSchedule() = default;

  // Kind and options as JSON, part of the optimizer's configuration; the same text for the same schedule, wherever it
  // is made.
  virtual std::string configuration() const = 0;
  virtual std::unique_ptr<LearningRateSchedule> clone() const = 0;

  // Of the next update, behind so many: 0 asks for the first one's, as Keras's schedules do. The same bits for the same
  // number; a finite number that is not negative.
  virtual float rate_after(std::int64_t updates) const = 0;

 protected:
  LearningRateSchedule() = default;
  LearningRateSchedule(const LearningRateSchedule&) = default;
  LearningRateSchedule& operator=(const LearningRateSchedule&) = default;
};

}  // namespace holdfast
