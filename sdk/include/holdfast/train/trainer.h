#pragma once

// Trains, evaluates and applies one model on the replicas of a run:
//
//   return supervise(argc, argv, {.replicas = 2, .run_directory = "run"}, [&](Replica& replica) {
//     Trainer trainer(replica, model, Adam{}, SparseCategoricalCrossentropy{{.from_logits = true}},
//                     {SparseCategoricalAccuracy{}});
//     trainer.fit(train.shuffle().batch(256), {.epochs = 5, .callbacks = {ModelCheckpoint{}}});
//     const Logs results = trainer.evaluate(test.batch(256));
//   });
//
// All ranks make the same calls in the same order. A Trainer holds the whole state of a run. If the run
// directory has a savepoint, the first call continues from it, and calls of fit() and evaluate() that
// had finished by then return their recorded results at once. Use a Trainer from one thread.
//
// A run may have several Trainers, one after the other: a head on cached outputs, and then the whole model. Each ends
// its scope before the next one begins, and each process makes them in the same order. They are numbered. The first
// one has its savepoints in the run directory, the second one in DIRECTORY/trainer2, and so on. Once a Trainer has made
// its first call, those before it have ended: a process that starts later passes their calls with the recorded results,
// without computing, and the run goes on in the newest Trainer. Earlier ones get no more calls or epochs then
// (Error{incompatible}).
//
// A call that throws ends a supervised run, or this start of it: let the exception leave the training function. With
// Replica::alone() the program may go on: the weights stay as after the last step, and further calls begin with them.
//
// The first call of any function joins the other replicas. A spare waits there: it has done what the
// program does before (reading data, building the model) and, for fit() or evaluate(), has tried the
// first batch. So its first step takes no longer than any other.

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/core/tensor.h"
#include "holdfast/data/dataset.h"
#include "holdfast/nn/loss.h"
#include "holdfast/nn/metric.h"
#include "holdfast/nn/model.h"
#include "holdfast/optim/optimizer.h"
#include "holdfast/train/callback.h"
#include "holdfast/train/fit_options.h"
#include "holdfast/train/output_losses.h"
#include "holdfast/train/replica.h"
#include "holdfast/train/trainable.h"
#include "holdfast/train/weights.h"

namespace holdfast {

// What fit() returns; the same on every rank.
struct FitResult {
  Logs results;               // means of the last epoch, validation included
  std::vector<Logs> history;  // one entry an epoch
  // What the model has now, and what evaluate() and predict() read by default: the averages after a fit() with
  // SwapEMAWeights, else the trained weights.
  Weights weights = Weights::trained;
};

// What evaluate() and predict() of a data set do besides.
struct InferenceOptions {
  // Called in this order, on every rank: on_test_begin() and its like by evaluate(), on_predict_begin() and its like by
  // predict(). All ranks give callbacks of the same names.
  std::vector<CallbackHandle> callbacks{};
  // Those that are read; without it, those that the last fit() gave to the model, as evaluate() says.
  std::optional<Weights> weights{};
};

// Where a loop over Trainer::steps() is. Valid until the loop goes on.
struct TrainingStep {
  // What a callback may see and ask for: step(), set_learning_rate(), save(), stop_training().
  TrainingContext& context;
  // The means over the steps of this epoch so far.
  const Logs& logs;
};

class FitCourse;
class StepLoop;

class Trainer {
 public:
  // Copies its arguments. The initial weights are those of the model if it has weights; otherwise they
  // are drawn from the seed of the run. Throws Error{invalid_argument}
  //   - if shapes do not fit,
  //   - if two metrics have one name, or a name that is taken ("loss", "val_loss"),
  //   - if a cross-entropy does not fit the activation of the last layer (crossentropy_options.h),
  //   - if a configuration() is not JSON.
  // The first call of a function below throws Error{incompatible} that names each option which differs
  // from those of the run that is resumed.
  Trainer(Replica& replica, const Model& model, const Optimizer& optimizer, const Loss& loss,
          const std::vector<MetricHandle>& metrics = {});
  // The same for a model with several outputs: one loss for each, in their order (output_losses.h).
  Trainer(Replica& replica, const Model& model, const Optimizer& optimizer, const std::vector<LossHandle>& losses,
          const std::vector<MetricHandle>& metrics = {});
  // Trains a model of the application, which must outlive the Trainer.
  Trainer(Replica& replica, Trainable& model);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Trains on `data`, which must be batched, and blocks until training is over. By then its savepoints are durable, on
  // whichever rank it returns, and `model` and its copies have the trained weights. The directory of a supervised run
  // then has a savepoint of the final state, even if no callback asked for one. If rank 0 fails while it writes the
  // last savepoints, the others go back to an earlier state and train to the end once more.
  //
  // Throws Error{invalid_argument} before the first step, and on a finished run too, for options that make no sense:
  // too few epochs, validation on samples that are trained on, or a name that a callback monitors() and no epoch logs.
  FitResult fit(const Dataset& data, const FitOptions& options = {});

  // fit() as a loop of the program. The body runs after each step, after the callbacks:
  //
  //   for (const TrainingStep& at : trainer.steps(train.batch(64), {.steps_per_epoch = 10'000})) {
  //     if (at.context.step() % 1000 == 0 && at.context.is_primary()) print(at.logs);
  //     if (at.logs.at("loss") < 0.01) at.context.stop_training();
  //   }
  //
  // It is the same call with the same bits, savepoints and record as fit(): its counter is part of the training
  // state. A run that was killed enters the loop after the step that it goes on from. After a failure the body
  // may run again for the same steps, and may miss one that another replica had made, as callbacks do. So
  // what it decides must follow from the step and the logs, on every rank alike.
  //
  // Let the loop end, or ask for its end with stop_training(). A loop that is left by break leaves the
  // call open, as one that throws does. No other call of the run, such as evaluate(), may be made within. The
  // Trainer must outlive the loop.
  StepLoop steps(const Dataset& data, const FitOptions& options = {});
  // Goes on training with other frozen layers, another optimizer, or both; `model` has the layers of the Trainer's
  // model. For transfer learning, which trains a new head on frozen layers first:
  //
  //   Trainer trainer(replica, model.frozen("base/*"), Adam{1e-3F}, SparseCategoricalCrossentropy{});
  //   trainer.fit(data, {.epochs = 5});
  //   trainer.compile(model, Adam{1e-5F});
  //   trainer.fit(data, {.epochs = 5});
  //
  // Weights stay as they are, also if `model` has others. The optimizer begins anew, as after compile() of Keras: with
  // its initial slots, and with update 1 for schedules and bias corrections. So does a learning rate that a callback
  // set. Losses and metrics stay. fit() hands the trained weights to this model, too.
  //
  // This is a call of the run, as fit() is. A run that starts again is refused (Error{incompatible}) if it freezes
  // other layers or has another optimizer here. Throws Error{invalid_argument} for a model of other layers, and
  // Error{unsupported} for a Trainable of the application.
  void compile(const Model& model, const Optimizer& optimizer);

  // Replaces parameters and buffers by those in a savepoint, or in a file that `holdfast convert` made of
  // another library's; the optimizer's slots stay. For example, the best weights of the fit() before:
  //
  //   trainer.load_weights(best_savepoint(replica.run_directory(), "val_loss"));
  //   const Logs best = trainer.evaluate(test.batch(256));
  //
  // This is a call of the run, as fit() is. A run that starts again repeats it unless it has gone on since,
  // and is refused (Error{incompatible}) if the file holds other weights by then. The savepoints of the run
  // stay as they are. Throws Error{not_found} and Error{invalid_file} for the file, and
  // Error{incompatible}, before anything changes, if an array is missing or has another shape, or if
  // replicas read different weights. With Weights::averaged, parameters become the moving averages of the savepoint.
  // Own averages are slots, and stay.
  void load_weights(const std::string& path, Weights weights = Weights::trained);

  // Makes the moving averages of the weights the weights, for this Trainer and for the model that it was given, as
  // Keras's fit() does at its end (keras.Optimizer.finalize_variable_values). fit() itself leaves the trained weights:
  //
  //   trainer.fit(train.batch(256), {.epochs = 10});  // Adam{{.use_ema = true}}
  //   trainer.take_averages();
  //
  // A later fit() goes on from the averages, which stay in their slot. Buffers and frozen layers stay as they are.
  // This is a call of the run, as load_weights() is, and like that writes no savepoint: Trainer::save() does. Throws
  // Error{invalid_argument} if the optimizer keeps no averages.
  void take_averages();

  // The means over `data` by name: the loss and each metric. `data` must be batched. Blocks. Without `weights`, it
  // reads those that the last fit() gave to the model (FitResult::weights): the averages with SwapEMAWeights, as
  // Keras's model has them then, and else the trained ones. After load_weights(), take_averages() and
  // compile() these are the trained ones again. Throws Error{invalid_argument} for averages that the optimizer does not
  // keep (holdfast/optim/weight_average.h).
  Logs evaluate(const Dataset& data, std::optional<Weights> weights = {});
  // The same with callbacks: trainer.evaluate(test.batch(256), {.callbacks = {my_callback}}). The call has finished
  // when all ranks have made theirs. An exception from one ends the call.
  Logs evaluate(const Dataset& data, const InferenceOptions& options);

  // A model of its own with the moving averages as weights, of the layers that are trained at present. To predict with
  // them, or to save them by themselves. Throws Error{invalid_argument} if the optimizer keeps none, and
  // Error{unsupported} for a Trainable of the application.
  Model averaged_model() const;

  // Outputs for the samples of `data`, [size, output shape] in the order of the data, in inference mode. All
  // replicas compute them, each its shards of every batch, and every rank gets all of them. The bits are the
  // same on any number of replicas. `data` must be batched, epoch 0 is predicted, and targets are not looked at.
  // With drop_remainder the outputs of the last samples are missing. Blocks.
  //
  // This is a call of the run, as evaluate() is, but outputs are not recorded. A run that starts again after
  // it computes them again. Throws Error{incompatible} if a later fit() has changed the weights by then; the form
  // with a sink has no such limit. Throws Error{invalid_argument} for a model with several outputs. `weights` as in
  // evaluate(), in all forms.
  Tensor predict(const Dataset& data, std::optional<Weights> weights = {});
  // The same with callbacks, as for evaluate().
  Tensor predict(const Dataset& data, const InferenceOptions& options);

  // Receives outputs batch by batch, on every rank: one tensor [n, output shape] for each output of the model,
  // for the samples from `first_sample` on. Write files on rank 0 alone.
  using PredictionSink = std::function<void(std::int64_t first_sample, const std::vector<Tensor>& outputs)>;
  // The same for outputs that do not fit in memory, and for several outputs:
  //
  //   std::ofstream file;
  //   trainer.predict(test.batch(256), [&](std::int64_t first_sample, const std::vector<Tensor>& outputs) {
  //     if (replica.rank() > 0) return;
  //     if (first_sample == 0) file.open("outputs.f32", std::ios::binary | std::ios::trunc);
  //     const auto values = outputs[0].values();
  //     file.write(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  //     file.flush();
  //   });
  //
  // After a failure, batches come again from the first one on. The call has finished when all ranks have been
  // given all batches. Then the sink is not called again, in no later start either. An exception from the sink
  // ends the call. A sink may take as long as a callback.
  void predict(const Dataset& data, const PredictionSink& sink, std::optional<Weights> weights = {});
  // The same with callbacks, as for evaluate().
  void predict(const Dataset& data, const PredictionSink& sink, const InferenceOptions& options);

  // Outputs [n, output shape] for features [n, feature shape], in inference mode. This rank computes them alone.
  Tensor predict(const Tensor& features, std::int64_t batch_size = 256, std::optional<Weights> weights = {});
  // The same for several inputs or outputs, in the order of the model.
  std::vector<Tensor> predict(const std::vector<Tensor>& inputs, std::int64_t batch_size = 256,
                              std::optional<Weights> weights = {});

  // Keeps a text with the model: an encoder, a vocabulary, names of classes. Each savepoint and file of weights has it
  // under this name, and attached_text(path, name) of holdfast/train/attached_texts.h gives it back. To be called
  // before the first fit() or other call that joins the replicas, with the same texts on each rank; a second text of a
  // name replaces the first. A run that goes on with other texts is refused, as one with other options is. Throws
  // Error{invalid_argument} after such a call, for names and texts that are not UTF-8, and for more than 16 MiB
  // together.
  void attach(const std::string& name, const std::string& text);
  // The same for several texts, which attached_list() gives back in their order: attach_list("classes",
  // picture_classes(folder)). Lists have their names in common with texts.
  void attach_list(const std::string& name, const std::vector<std::string>& texts);

  // The folder of its savepoints, which best_savepoint() takes; see above. Empty without a run directory.
  std::string directory() const;
  // Updates applied since the start of the run, over all calls of fit() of this Trainer.
  std::int64_t step() const;
  // Digest of the parameters, and not of their averages, in their natural layout and order, without padding
  // (base/digest.h). Equal on all ranks.
  Digest weights_digest() const;
  // Writes a savepoint of the present state and returns its digest once it is durable. Any rank may call this alone.
  Digest save(const std::string& path) const;

 private:
  friend class FitCourse;
  class Session;
  std::unique_ptr<Session> session_;
};

// What Trainer::steps() returns: a range, which can be gone through once.
class StepLoop {
 public:
  // Goes through the steps in order.
  class Iterator {
   public:
    const TrainingStep& operator*() const { return *loop_->step_; }  // the step that was just made
    // Makes the next step, with all that fit() does between two steps. Throws as fit() does.
    Iterator& operator++() {
      loop_->advance();
      return *this;
    }
    // Whether training has ended.
    bool operator==(std::default_sentinel_t) const { return !loop_->step_.has_value(); }

   private:
    friend class StepLoop;
    explicit Iterator(StepLoop& loop) : loop_(&loop) {}
    StepLoop* loop_;
  };

  StepLoop(StepLoop&&) noexcept;
  StepLoop& operator=(StepLoop&&) = delete;
  ~StepLoop();

  // Makes the first step.
  Iterator begin() {
    advance();
    return Iterator(*this);
  }
  std::default_sentinel_t end() const { return {}; }  // the end of the loop
  // As fit() returns it, after the end of the loop.
  const FitResult& result() const { return result_; }

 private:
  friend class Trainer;
  explicit StepLoop(std::unique_ptr<FitCourse> course);
  void advance();

  std::unique_ptr<FitCourse> course_;
  std::optional<TrainingStep> step_;
  FitResult result_;
};

// Reads the base model and its weights from a savepoint, or from the file that `holdfast convert`
// made of a Keras model. Throws Error{invalid_file} for a damaged file, and Error{unsupported} if it
// holds an application's own model. With Weights::averaged, the weights are the moving averages of the
// savepoint; throws Error{invalid_argument} if it has none.
Model load_model(const std::string& path, Weights weights = Weights::trained);

}  // namespace holdfast
