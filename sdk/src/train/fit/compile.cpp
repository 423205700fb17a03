// Other arrays of optimizers and other gradients are another state, so the change is a call of the run, as fit() is: a
// process that joins later lays its arrays out by the record of the call, before it knows the optimizer. Until the
// program comes to this call, it makes no step. docs/decisions/calls.md

#include <utility>

#include "holdfast/base/error.h"
#include "train/fit/session.h"
#include "train/state/run_results.h"
#include "train/step/model_trainable.h"

namespace holdfast {

void Trainer::Session::compile(const Model& model, const Optimizer& optimizer) {
  auto* const trainable = dynamic_cast<ModelTrainable*>(&training_.trainable);
  if (trainable == nullptr) {
    throw Error(ErrorCode::unsupported,
                "compile() takes a model of layers, and this Trainer has a Trainable of the application; change what "
                "apply_update() does instead");
  }
  CallRecord begun;
  begun.kind = "compile";
  begun.epochs = 1;
  begun.data = trainable->describe_training(model, optimizer);
  generation_.join();
  const std::size_t call = join_call(begun);
  if (is_repeated(call)) trainable->change_training(laid_out_training(record_of(call)), optimizer);
  in_call(call, [&] { run_compile(call, begun, *trainable, optimizer); });
  trainable->train_with(model, optimizer);
  weights_of_model_ = Weights::trained;
  note_results(*training_.context, training_.state, training_.weights_digest());
}

void Trainer::Session::run_compile(std::size_t call, const CallRecord& begun, ModelTrainable& trainable,
                                   const Optimizer& optimizer) {
  while (!record_of(call).is_finished) {
    try {
      // A snapshot on its way may be of arrays that are about to go.
      memory_saver_.finish();
      training_.enter(TrainingPhase::waiting_for_peers);
      // After it no rank adds gradients of the old layout any more.
      training_.runner->communicator().barrier(training_.runner->deadline());
      training_.enter(TrainingPhase::callbacks);
      // Nothing in here waits for another rank. So a rank either has the new state or the old one.
      CallRecord& record = record_of(call);
      record.begun_at_step = training_.state.step;
      trainable.change_training(laid_out_training(record), optimizer);
      training_.state.learning_rate.reset();
      record.is_finished = true;
      training_.runner->use_layout();
    } catch (const GenerationEnded&) {
      begin_next_generation(begun);
    } catch (const RollBack&) {
      generation_.give_up_state();
      begin_next_generation(begun);
    }
  }
}

}  // namespace holdfast
