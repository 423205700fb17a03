// The public class holds a Session alone, so that a program's headers know nothing of generations, agreements and
// savers.

#include "holdfast/train/trainer.h"

#include "train/fit/fit_course.h"
#include "train/fit/session.h"
#include "train/state/attached_texts.h"
#include "train/step/model_trainable.h"

namespace holdfast {

Trainer::Trainer(Replica& replica, const Model& model, const Optimizer& optimizer, const Loss& loss,
                 const std::vector<MetricHandle>& metrics)
    : Trainer(replica, model, optimizer, std::vector<LossHandle>{loss}, metrics) {}

Trainer::Trainer(Replica& replica, const Model& model, const Optimizer& optimizer,
                 const std::vector<LossHandle>& losses, const std::vector<MetricHandle>& metrics) {
  std::unique_ptr<Trainable> trainable = std::make_unique<ModelTrainable>(model, optimizer, losses, metrics);
  // Taken before the call below, whose arguments are evaluated in any order.
  Trainable& reference = *trainable;
  session_ = std::make_unique<Session>(replica, std::move(trainable), reference);
}

// The application owns the model, so the Session is given none to own.
Trainer::Trainer(Replica& replica, Trainable& model) : session_(std::make_unique<Session>(replica, nullptr, model)) {}

// Here, where Session is a complete type.
Trainer::~Trainer() = default;

FitResult Trainer::fit(const Dataset& data, const FitOptions& options) {
  // The same course as that of steps(), so that both compute the same bits.
  FitCourse course(*session_, data, options);
  while (course.advance()) {
  }
  return course.result();
}
StepLoop Trainer::steps(const Dataset& data, const FitOptions& options) {
  return StepLoop(std::make_unique<FitCourse>(*session_, data, options));
}
Logs Trainer::evaluate(const Dataset& data, std::optional<Weights> weights) {
  return session_->evaluate(data, {.weights = weights});
}
Logs Trainer::evaluate(const Dataset& data, const InferenceOptions& options) {
  return session_->evaluate(data, options);
}
Model Trainer::averaged_model() const {
  return session_->averaged_model();
}
void Trainer::take_averages() {
  session_->take_averages();
}
Tensor Trainer::predict(const Dataset& data, std::optional<Weights> weights) {
  return session_->predict(data, InferenceOptions{.weights = weights});
}
Tensor Trainer::predict(const Dataset& data, const InferenceOptions& options) {
  return session_->predict(data, options);
}
void Trainer::predict(const Dataset& data, const PredictionSink& sink, std::optional<Weights> weights) {
  session_->predict(data, sink, InferenceOptions{.weights = weights});
}
void Trainer::predict(const Dataset& data, const PredictionSink& sink, const InferenceOptions& options) {
  session_->predict(data, sink, options);
}
// Each rank computes these two alone, so no rank waits for another.
Tensor Trainer::predict(const Tensor& features, std::int64_t batch_size, std::optional<Weights> weights) {
  return session_->predict(features, batch_size, weights);
}
std::vector<Tensor> Trainer::predict(const std::vector<Tensor>& inputs, std::int64_t batch_size,
                                     std::optional<Weights> weights) {
  return session_->predict(inputs, batch_size, weights);
}
void Trainer::attach(const std::string& name, const std::string& text) {
  session_->attach(name, text);
}

// Savepoints know only texts, so a list is one: an array of JSON.
void Trainer::attach_list(const std::string& name, const std::vector<std::string>& texts) {
  session_->attach(name, text_of_list(name, texts));
}
std::string Trainer::directory() const {
  return session_->directory();
}
std::int64_t Trainer::step() const {
  return session_->step();
}
Digest Trainer::weights_digest() const {
  return session_->weights_digest();
}
void Trainer::compile(const Model& model, const Optimizer& optimizer) {
  session_->compile(model, optimizer);
}
void Trainer::load_weights(const std::string& path, Weights weights) {
  session_->load_weights(path, weights);
}
Digest Trainer::save(const std::string& path) const {
  return session_->save(path);
}

StepLoop::StepLoop(std::unique_ptr<FitCourse> course) : course_(std::move(course)) {}
// Here, where FitCourse is a complete type.
StepLoop::StepLoop(StepLoop&&) noexcept = default;
StepLoop::~StepLoop() = default;

void StepLoop::advance() {
  // It refers to the course's logs, which the next step changes.
  step_.reset();
  if (course_->advance()) {
    step_.emplace(TrainingStep{.context = course_->context(), .logs = course_->logs()});
  } else {
    result_ = course_->result();
  }
}

}  // namespace holdfast
