// A small training that logs; Python tests read what it writes:
//   logging_program RUN_DIRECTORY [URL [CERTIFICATES]]
//   logging_program RUN_DIRECTORY embeddings
// Trains five epochs of 16 steps, with a savepoint after every second epoch. With a URL, sends each epoch there. With
// "embeddings" it trains a table of five words.
// HOLDFAST_FAULTS injects faults.

#include <string>
#include <vector>

#include "holdfast/holdfast.h"

namespace {

using namespace holdfast;

Dataset points(std::int64_t count) {
  Tensor features(Shape{count, 2});
  Tensor targets(Shape{count, 1});
  for (std::int64_t i = 0; i < count; ++i) {
    Random random(5, Purpose::user, 0, static_cast<std::uint64_t>(i));
    features.sample(i)[0] = random.normal();
    features.sample(i)[1] = random.normal();
    targets.sample(i)[0] = features.sample(i)[0] - 2 * features.sample(i)[1];
  }
  return from_tensors(std::move(features), std::move(targets));
}

// A note, a picture of one color for each epoch, and a number.
void add_points(TrainingContext& context, TensorBoardPoints& points) {
  Tensor picture{Shape{2, 3, 3}};
  for (float& value : picture.values()) value = static_cast<float>(context.epoch()) / 5;
  points.image("color", picture);
  points.text("note", "epoch **" + std::to_string(context.epoch()) + "**");
  points.scalar("square", static_cast<double>(context.epoch() * context.epoch()));
}

// Which of five words come in pairs.
Dataset pairs() {
  std::vector<std::int32_t> ids;
  std::vector<float> targets;
  for (std::int32_t pair = 0; pair < 25; ++pair) {
    ids.insert(ids.end(), {pair / 5, pair % 5});
    targets.push_back(pair / 5 == pair % 5 ? 1.0F : 0.0F);
  }
  return from_tensors(Tensor(Shape{25, 2}, ids), Tensor(Shape{25, 1}, targets));
}

void train_embeddings(Replica& replica) {
  const Sequential model{Input({2}, {.dtype = DType::i32}), Embedding{5, 3}, Flatten{}, Dense{1}};
  Trainer trainer{replica, model, SGD{0.05F}, MeanSquaredError{}};
  std::vector<CallbackHandle> callbacks = {
      TensorBoard{{.embeddings_every_epochs = 1, .embedding_labels = {{"embedding", {"a", "b", " ", "\n", "\"e\""}}}}}};
  trainer.fit(pairs().batch(5), {.epochs = 2, .callbacks = callbacks});
}

}  // namespace

int main(int argc, char** argv) {
  const SuperviseOptions options{.replicas = 2, .run_directory = argc > 1 ? argv[1] : "run"};
  const std::string url = argc > 2 ? argv[2] : "";
  if (url == "embeddings") return supervise(argc, argv, options, train_embeddings);
  const std::string certificates = argc > 3 ? argv[3] : "";
  return supervise(argc, argv, options, [&](Replica& replica) {
    const Sequential model{Input{2}, Dense{8, {.activation = Activation::tanh}}, Dense{1}};
    Trainer trainer{replica, model, SGD{0.05F}, MeanSquaredError{}, {MeanAbsoluteError{}}};
    std::vector<CallbackHandle> callbacks = {ModelCheckpoint{{.every_epochs = 2}}, CSVLogger{},
                                             TensorBoard{{.scalars_every_steps = 8,
                                                          .histograms_every_epochs = 1,
                                                          .images_every_epochs = 2,
                                                          .write_graph = true,
                                                          .profile_steps = {2, 4},
                                                          .add = add_points}}};
    if (!url.empty()) callbacks.emplace_back(RemoteMonitor{{.root = url, .run = "r", .ca_file = certificates}});
    trainer.fit(points(256).shuffle().batch(16),
                {.epochs = 5, .validation = points(64).batch(16), .callbacks = callbacks});
  });
}
