#pragma once

// Which of two values of a metric is the better one. ModelCheckpoint and EarlyStopping take it from the user; the
// format part, where it is called format::BestValue, decides by it which savepoints stay.

namespace holdfast {

enum class Best {
  lowest,   // as of a loss
  highest,  // as of an accuracy
};

}  // namespace holdfast
