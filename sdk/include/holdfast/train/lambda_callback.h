#pragma once

// A callback of functions, for a few lines that need no class (keras.callbacks.LambdaCallback):
//
//   trainer.fit(data, {.callbacks = {LambdaCallback{{.on_epoch_end = [](TrainingContext& context, const Logs& logs) {
//     if (context.is_primary()) std::printf("epoch %ld: %f\n", context.epoch(), logs.at("loss"));
//   }}}}});
//
// What the functions capture does not survive a failure: the calls since the last state are made again, in
// a process that began anew. Keep what must survive in `state`, which the training state holds:
//
//   LambdaCallback{{.name = "count",
//                   .state = {{"steps", std::int64_t{0}}},
//                   .on_step_end = [](CallbackState& state, TrainingContext&, const Logs&) {
//                     ++std::get<std::int64_t>(state.at("steps"));
//                   }}}

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "holdfast/train/callback.h"

namespace holdfast {

// A function of `Arguments`, or of the callback's state and `Arguments`. Empty by default.
template <typename... Arguments>
class LambdaFunction {
 public:
  LambdaFunction() = default;
  // From a function of the arguments, with the state before them if it takes one.
  template <typename Function>
  requires std::invocable<Function&, CallbackState&, Arguments...> LambdaFunction(Function function)
      : function_(std::move(function)) {}  // NOLINT(google-explicit-constructor)
  // From a function of the arguments, with the state before them if it takes one.
  template <typename Function>
  requires std::invocable<Function&, Arguments...> LambdaFunction(
      Function function)  // NOLINT(google-explicit-constructor)
      : function_([function = std::move(function)](CallbackState&, Arguments... arguments) mutable {
          function(arguments...);
        }) {}

  // Does nothing if it is empty.
  void operator()(CallbackState& state, Arguments... arguments) const {
    if (function_) function_(state, arguments...);
  }

 private:
  std::function<void(CallbackState&, Arguments...)> function_;
};

// All functions may be left out. They are called as those of Callback, on every rank, and after a failure again for the
// steps since the last state. An exception of one ends fit(), or the call that it was given to.
struct LambdaCallbackOptions {
  // Names the state in savepoints, so it differs from those of the other callbacks of a fit(). Two lambdas of one fit()
  // need names.
  std::string name = "lambda";
  // What functions that take a state begin with, and change. Values are numbers, texts or lists of numbers
  // (CallbackValue), and keep their bits in a savepoint.
  CallbackState state{};

  LambdaFunction<TrainingContext&> on_fit_begin{};               // see Callback::on_fit_begin()
  LambdaFunction<TrainingContext&> on_epoch_begin{};             // see Callback::on_epoch_begin()
  LambdaFunction<TrainingContext&> on_step_begin{};              // see Callback::on_step_begin()
  LambdaFunction<TrainingContext&, const Logs&> on_step_end{};   // see Callback::on_step_end()
  LambdaFunction<TrainingContext&, const Logs&> on_epoch_end{};  // see Callback::on_epoch_end()
  LambdaFunction<TrainingContext&, const Logs&> on_fit_end{};    // see Callback::on_fit_end()

  LambdaFunction<const TrainingContext&> on_test_begin{};                                 // see Callback
  LambdaFunction<const TrainingContext&, std::int64_t> on_test_batch_begin{};             // see Callback
  LambdaFunction<const TrainingContext&, std::int64_t, const Logs&> on_test_batch_end{};  // see Callback
  LambdaFunction<const TrainingContext&, const Logs&> on_test_end{};                      // see Callback
  LambdaFunction<const TrainingContext&> on_predict_begin{};                              // see Callback
  LambdaFunction<const TrainingContext&, std::int64_t> on_predict_batch_begin{};          // see Callback
  LambdaFunction<const TrainingContext&, std::int64_t> on_predict_batch_end{};            // see Callback
  LambdaFunction<const TrainingContext&> on_predict_end{};                                // see Callback
};

class LambdaCallback final : public Callback {
 public:
  // Throws Error{invalid_argument} for an empty name.
  explicit LambdaCallback(LambdaCallbackOptions options);

  std::string name() const override { return options_.name; }
  CallbackState state() const override { return state_; }
  void restore(const CallbackState& state) override { state_ = state; }
  // The state of each fit() begins as the options say. After a failure restore() is called in place of this, so the
  // state goes on.
  void on_fit_begin(TrainingContext& context) override;
  void on_epoch_begin(TrainingContext& context) override;
  void on_step_begin(TrainingContext& context) override;
  void on_step_end(TrainingContext& context, const Logs& logs) override;
  void on_epoch_end(TrainingContext& context, const Logs& logs) override;
  void on_fit_end(TrainingContext& context, const Logs& logs) override;
  void on_test_begin(const TrainingContext& context) override;
  void on_test_batch_begin(const TrainingContext& context, std::int64_t batch) override;
  void on_test_batch_end(const TrainingContext& context, std::int64_t batch, const Logs& logs) override;
  void on_test_end(const TrainingContext& context, const Logs& logs) override;
  void on_predict_begin(const TrainingContext& context) override;
  void on_predict_batch_begin(const TrainingContext& context, std::int64_t batch) override;
  void on_predict_batch_end(const TrainingContext& context, std::int64_t batch) override;
  void on_predict_end(const TrainingContext& context) override;

 private:
  LambdaCallbackOptions options_;
  CallbackState state_;
};

}  // namespace holdfast
