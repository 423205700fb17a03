#include "holdfast/train/lambda_callback.h"

#include "holdfast/base/error.h"

namespace holdfast {

LambdaCallback::LambdaCallback(LambdaCallbackOptions options) : options_(std::move(options)), state_(options_.state) {
  if (options_.name.empty()) throw Error(ErrorCode::invalid_argument, "LambdaCallback needs a name");
}

void LambdaCallback::on_fit_begin(TrainingContext& context) {
  state_ = options_.state;
  if (options_.on_fit_begin) options_.on_fit_begin(context);
}

void LambdaCallback::on_epoch_begin(TrainingContext& context) {
  if (options_.on_epoch_begin) options_.on_epoch_begin(context);
}

void LambdaCallback::on_step_end(TrainingContext& context, const Logs& logs) {
  if (options_.on_step_end) options_.on_step_end(context, logs);
  if (options_.on_step_end_with_state) options_.on_step_end_with_state(state_, context, logs);
}

void LambdaCallback::on_epoch_end(TrainingContext& context, const Logs& logs) {
  if (options_.on_epoch_end) options_.on_epoch_end(context, logs);
  if (options_.on_epoch_end_with_state) options_.on_epoch_end_with_state(state_, context, logs);
}

void LambdaCallback::on_fit_end(TrainingContext& context, const Logs& logs) {
  if (options_.on_fit_end) options_.on_fit_end(context, logs);
}

}  // namespace holdfast
