#include "holdfast/train/callback.h"

#include "holdfast/base/error.h"

namespace holdfast {

void TrainingContext::set_learning_rate(float) {
  throw Error(ErrorCode::unsupported, "this training takes no learning rate from callbacks");
}

}  // namespace holdfast
