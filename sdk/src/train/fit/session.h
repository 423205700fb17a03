#pragma once

// What a Trainer is inside: the numbered fit() and evaluate() calls of a run. Each call goes on from wherever the state
// is, and again after each failure, until the state says that it is finished. How replicas meet, agree and save is in
// generation.h, agreement.h and saver.h. docs/decisions/calls.md

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/train/trainer.h"
#include "train/agreement/agreement.h"
#include "train/context/replica_context.h"
#include "train/fit/epoch_plan.h"
#include "train/fit/fit_context.h"
#include "train/fit/generation.h"
#include "train/fit/sample_supply.h"
#include "train/fit/watching/watchers.h"
#include "train/saving/memory_saver.h"
#include "train/saving/saver.h"
#include "train/state/snapshot.h"
#include "train/step/training.h"

namespace holdfast {

class ModelTrainable;

// The sentence of a call that ended by what has none.
inline constexpr const char* kOtherThanException = "something was thrown that is not a std::exception";

class Trainer::Session {
 public:
  // `owned` may be empty if the application owns the Trainable. The process becomes part of a generation with the first
  // call of any of the functions below. A spare waits there, and has done by then what the program does before.
  Session(Replica& replica, std::unique_ptr<Trainable> owned, Trainable& trainable);
  ~Session();

  // Without `asked`, the weights are those that the last fit() gave to the model.
  using AskedWeights = std::optional<Weights>;
  Logs evaluate(const Dataset& data, const InferenceOptions& options);
  Tensor predict(const Dataset& data, const InferenceOptions& options);                            // predict.cpp
  void predict(const Dataset& data, const PredictionSink& sink, const InferenceOptions& options);  // predict.cpp
  Tensor predict(const Tensor& features, std::int64_t batch_size, AskedWeights asked);
  std::vector<Tensor> predict(const std::vector<Tensor>& inputs, std::int64_t batch_size, AskedWeights asked);
  void attach(const std::string& name, const std::string& text);
  Digest save(const std::string& path);
  void load_weights(const std::string& path, Weights weights);  // load_weights.cpp
  void take_averages();
  void compile(const Model& model, const Optimizer& optimizer);  // compile.cpp
  Model averaged_model();
  Digest weights_digest();
  std::string directory() const { return training_.context->trainer_directory(); }
  std::int64_t step();

 private:
  friend class FitCourse;

  // What is to be evaluated or predicted, and who watches.
  struct Inference {
    const Dataset& data;
    Weights weights;
    const Watchers& watchers;
  };

  // session.cpp
  // What the program asks for, before anything of it is done.
  static CallRecord new_call(const std::string& kind, const Dataset& data, std::int64_t epochs);
  // Returns the index of the next call's record. The record is new unless the run had come as far as this call before.
  // Where the call is still to be made, all ranks compare what they were given: the record, and `further`, which is
  // JSON.
  std::size_t join_call(const CallRecord& call, const std::string& further = "null");
  // After a generation has begun: brings the state to `call`, too.
  void rejoin_call(const CallRecord& call);
  // Whether a call that changes weights had finished before this process began, and its result is in no savepoint.
  bool is_repeated(std::size_t call) const { return generation_.has_ended() && call >= generation_.calls_of_arrays(); }
  // Returns false if the generation has ended meanwhile. Throws Error{incompatible} if a rank was given something else.
  bool compare_arguments();
  CallRecord& record_of(std::size_t call) { return training_.state.calls.at(call); }
  // After a call was interrupted: goes on with the next generation.
  void begin_next_generation(const CallRecord& call);
  void give_more_epochs(std::size_t call, std::int64_t epochs);
  // Throws Error{invalid_argument} for averages that the optimizer does not keep; `purpose` says what was tried.
  void require_averages(Weights weights, const char* purpose) const;
  Weights weights_for(AskedWeights asked, const char* purpose) const;
  // As new_call(), for a call whose results depend on the weights.
  static CallRecord new_call_with(const std::string& kind, const Dataset& data, Weights weights);
  Logs evaluate_once(const Inference& asked);
  void meet_at_the_end();
  void settle_kept_weights(std::size_t call, bool keeps_weights);
  std::vector<Tensor> predict_arrays(std::span<const Tensor* const> inputs, std::int64_t batch_size,
                                     AskedWeights asked);
  // Runs what a call does. If that throws, later calls know of it. A stop is not a failure of the call.
  template <class Function>
  auto in_call(std::size_t call, const Function& function) {
    try {
      return function();
    } catch (const StopRequested&) {
      throw;
    } catch (const std::exception& failure) {
      note_failure(call, failure.what());
      throw;
    } catch (...) {
      note_failure(call, kOtherThanException);
      throw;
    }
  }
  void note_failure(std::size_t call, const std::string& sentence);
  // Tells the log, the journal and the results of the run what skip_bad() left out of the data of a call, once it has
  // been joined.
  void note_skipped(std::size_t call, std::initializer_list<const Dataset*> data);
  [[noreturn]] void refuse_later_call(std::size_t index) const;
  void end_where_asked();
  void run_evaluate(std::size_t call, const CallRecord& begun, const Inference& asked);

  // predict.cpp
  bool run_predict(std::size_t call, const CallRecord& begun, const Inference& asked, const PredictionSink& sink);
  void predict_once(const Inference& asked, const PredictionSink& sink);
  void predict_alone(const Dataset& data, const PredictionSink& sink, Weights weights);
  void share_requests();

  // load_weights.cpp
  void run_load_weights(std::size_t call, const CallRecord& begun, const Snapshot& saved, const std::string& path);
  void run_take_averages(std::size_t call, const CallRecord& begun);
  void require_same_weights(const Digest& digest, const std::string& path);

  // compile.cpp
  void run_compile(std::size_t call, const CallRecord& begun, ModelTrainable& trainable, const Optimizer& optimizer);

  // A run has one Trainer at a time.
  class Claim {
   public:
    // Throws Error{invalid_argument} where the run has one.
    explicit Claim(std::shared_ptr<Replica::Context> context);
    ~Claim() { context_->has_trainer = false; }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

   private:
    const std::shared_ptr<Replica::Context> context_;
  };

  const Claim claim_;
  const std::unique_ptr<Trainable> owned_;
  Training training_;
  Agreement agreement_;
  Saver saver_;
  MemorySaver memory_saver_;
  SampleSupply samples_;
  Generation generation_;

  std::string arguments_;  // of the newest call, as JSON
  StepRequests asked_;     // made with the last steps, and not yet answered
  // The call that ended by an exception, and its sentence.
  struct FailedCall {
    std::size_t index = 0;
    std::string sentence{};
  };
  std::optional<FailedCall> failed_call_;
  // What the model has, as this process has learned from the calls that it made or passed.
  Weights weights_of_model_ = Weights::trained;
  bool is_extended_ = false;  // fit() had ended, and goes on for more epochs: callbacks do not know yet
};

}  // namespace holdfast
