// Regression on a CSV file with a column "price"; all others are features. Columns of text are categories.
//
//   tabular HOUSES.csv      prints predicted and true prices of five rows for validation
//
// The run is in HOUSES.csv.run, and goes on where it was if the program is killed and started again.

#include <holdfast/holdfast.h>

#include <cstdio>

using namespace holdfast;

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "houses.csv", run = path + ".run";
  const auto [train, test] = read_csv(path).without_missing().split(0.2, {.seed = 1});
  const auto encoder = TableEncoder::fit(train, {.targets = {"price"}, .normalize_targets = true});
  const Dataset training = encoder.dataset(train), validation = encoder.dataset(test);
  const SuperviseOptions options{.replicas = 2, .run_directory = run, .shards = 2};
  const int code = supervise(argc, argv, options, [&](Replica& replica) {
    const Dense hidden{32, {.activation = Activation::relu}};
    const Sequential model{Input{encoder.features()}, hidden, Dense{1}};
    Trainer trainer{replica, model, Adam{1e-2F}, MeanSquaredError{}, {metrics::R2Score{}}};
    trainer.attach("columns", encoder.text());  // each savepoint can be used without the table
    trainer.fit(training.shuffle().batch(32),
                {.epochs = 100,
                 .validation = validation.batch(32),
                 .callbacks = {ModelCheckpoint{{.best_by = "val_loss"}}, EarlyStopping{{.patience = 10}}}});
  });
  if (code != 0 || is_replica_process()) return code;
  const Model best = load_model(best_savepoint(run, "val_loss"));
  const auto price = encoder.to_target_units(best.predict(encoder.features(test))).values();
  for (int i = 0; auto y : test.take(5).numbers("price")) std::printf("%.0f %.0f\n", price[i++], y);
}
