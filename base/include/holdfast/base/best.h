#pragma once

// Which of two values of a metric is the better one. ModelCheckpoint and EarlyStopping take it from the user, or ask
// the metric; the format part, where it is called format::BestValue, decides by it which savepoints stay.

namespace holdfast {

enum class Best {
  lowest,   // as of a loss
  highest,  // as of an accuracy
  // As the metric says of itself (Metric::best()): the lowest loss, the highest accuracy. What nothing is known of is
  // refused, with a sentence that asks for one of the other two.
  automatic,
};

}  // namespace holdfast
