// A training that is changed and started again.
//
//   edits [--run-dir DIR] [--epochs N] [--rate RATE] [--units N] [--then-rate RATE] [--from SAVEPOINT] [--fresh]

#include <holdfast/holdfast.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

using namespace holdfast;

namespace {

// What is edited. In a program of your own these are numbers in the code.
struct Edited {
  std::int64_t epochs = 5;
  float rate = 0.002F;
  std::int64_t units = 8;
  float then_rate = 0;  // of five more epochs, if it is not 0
  std::string from{};   // a savepoint of another run, whose model is trained; none if empty
};

// Points with two features; the target is a linear function of them.
Dataset points() {
  Tensor features{Shape{512, 2}};
  Tensor targets{Shape{512, 1}};
  for (std::int64_t i = 0; i < 512; ++i) {
    Random random(5, Purpose::user, 0, static_cast<std::uint64_t>(i));
    features.sample(i)[0] = random.normal();
    features.sample(i)[1] = random.normal();
    targets.sample(i)[0] = features.sample(i)[0] - 2 * features.sample(i)[1];
  }
  return from_tensors(std::move(features), std::move(targets));
}

Model model_of(const Edited& edited) {
  if (!edited.from.empty()) return load_model(edited.from);
  return Sequential{Input{2}, Dense{edited.units, {.activation = Activation::tanh}}, Dense{1}};
}

void train(Replica& replica, const Edited& edited) {
  const Model model = model_of(edited);
  const Dataset batches = points().shuffle().batch(16);
  Trainer trainer{replica, model, Adam{edited.rate}, MeanSquaredError{}};
  FitResult fit = trainer.fit(batches, {.epochs = edited.epochs, .callbacks = {ModelCheckpoint{}}});
  if (edited.then_rate != 0) {
    trainer.compile(model, Adam{edited.then_rate});
    fit = trainer.fit(batches, {.epochs = 5, .callbacks = {ModelCheckpoint{}}});
  }
  if (replica.is_primary()) {
    std::printf("step %ld  loss %.4f  weights %s\n", static_cast<long>(trainer.step()), fit.results.at("loss"),
                trainer.weights_digest().hex().c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  Edited edited;
  SuperviseOptions options{.replicas = 2, .run_directory = "run", .shards = 2};
  bool is_fresh = false;
  CLI::App app("A training that is changed and started again");
  app.add_option("--run-dir", options.run_directory);
  app.add_option("--epochs", edited.epochs);
  app.add_option("--rate", edited.rate);
  app.add_option("--units", edited.units);
  app.add_option("--then-rate", edited.then_rate);
  app.add_option("--from", edited.from);
  app.add_flag("--fresh", is_fresh);
  CLI11_PARSE(app, argc, argv);

  if (is_fresh) options.start = Start::fresh;
  return supervise(argc, argv, options, [&](Replica& replica) { train(replica, edited); });
}
