#include "holdfast/train/lambda_callback.h"

#include "holdfast/base/error.h"

namespace holdfast {

LambdaCallback::LambdaCallback(LambdaCallbackOptions options) : options_(std::move(options)), state_(options_.state) {
  if (options_.name.empty()) throw Error(ErrorCode::invalid_argument, "LambdaCallback needs a name");
}

// After a recovery restore() is called in place of this, so the state goes on. Another fit() begins anew.
void LambdaCallback::on_fit_begin(TrainingContext& context) {
  state_ = options_.state;
  options_.on_fit_begin(state_, context);
}

// A function that was left out does nothing, so none of these calls needs a check.
void LambdaCallback::on_epoch_begin(TrainingContext& context) {
  options_.on_epoch_begin(state_, context);
}

void LambdaCallback::on_step_begin(TrainingContext& context) {
  options_.on_step_begin(state_, context);
}

void LambdaCallback::on_step_end(TrainingContext& context, const Logs& logs) {
  options_.on_step_end(state_, context, logs);
}

void LambdaCallback::on_epoch_end(TrainingContext& context, const Logs& logs) {
  options_.on_epoch_end(state_, context, logs);
}

void LambdaCallback::on_fit_end(TrainingContext& context, const Logs& logs) {
  options_.on_fit_end(state_, context, logs);
}

void LambdaCallback::on_test_begin(const TrainingContext& context) {
  options_.on_test_begin(state_, context);
}

void LambdaCallback::on_test_batch_begin(const TrainingContext& context, std::int64_t batch) {
  options_.on_test_batch_begin(state_, context, batch);
}

void LambdaCallback::on_test_batch_end(const TrainingContext& context, std::int64_t batch, const Logs& logs) {
  options_.on_test_batch_end(state_, context, batch, logs);
}

void LambdaCallback::on_test_end(const TrainingContext& context, const Logs& logs) {
  options_.on_test_end(state_, context, logs);
}

void LambdaCallback::on_predict_begin(const TrainingContext& context) {
  options_.on_predict_begin(state_, context);
}

void LambdaCallback::on_predict_batch_begin(const TrainingContext& context, std::int64_t batch) {
  options_.on_predict_batch_begin(state_, context, batch);
}

void LambdaCallback::on_predict_batch_end(const TrainingContext& context, std::int64_t batch) {
  options_.on_predict_batch_end(state_, context, batch);
}

void LambdaCallback::on_predict_end(const TrainingContext& context) {
  options_.on_predict_end(state_, context);
}

}  // namespace holdfast
