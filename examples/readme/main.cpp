#include <holdfast/holdfast.h>

#include <cstdio>

using namespace holdfast;

int main(int argc, char** argv) {
  return supervise(argc, argv, {.replicas = 2, .run_directory = "run", .shards = 4}, [](Replica& replica) {
    const Dataset digits = read_idx("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz");
    const auto [training, validation] = digits.split(1000);
    const Sequential model{Input{28, 28, 1}, Conv2D{6, 5, {.activation = Activation::relu}}, MaxPooling2D{2},
                           Flatten{},        Dense{84, {.activation = Activation::relu}},    Dense{10}};
    Trainer trainer{replica,
                    model,
                    Adam{1e-3F},
                    SparseCategoricalCrossentropy{{.from_logits = true}},
                    {SparseCategoricalAccuracy{{.name = "accuracy"}}}};
    trainer.fit(training.shuffle().batch(128).prefetch(2),
                {.epochs = 5,
                 .validation = validation.batch(128),
                 .callbacks = {ModelCheckpoint{{.best_by = "val_loss"}}, EarlyStopping{{.patience = 2}}, CSVLogger{},
                               TensorBoard{}, ProgressLine{}}});
    const Logs means = trainer.evaluate(read_idx("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz").batch(128));
    if (replica.is_primary()) std::printf("test accuracy %.4f\n", means.at("accuracy"));
  });
}
