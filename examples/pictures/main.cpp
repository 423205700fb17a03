// Learns the classes of a folder of JPEG and PNG files, with one folder for each class.
//
//   pictures FOLDER      prints the part of the pictures kept apart whose class was found
//
// The run is in FOLDER.run, and goes on where it was if the program is killed and started again.

#include <holdfast/holdfast.h>

#include <cstdio>

using namespace holdfast;

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "flowers";
  const auto [train, test] = read_pictures(folder, {.height = 36, .width = 36}).cache().split(0.2, {.by_label = true});
  const AugmentOptions changes{.rotate = 0.03F, .zoom = 0.1F, .edge = PictureEdge::repeat, .contrast = 0.2F};
  const Dataset training = train.shuffle().map(random_crop(32, 32)).map(augment(changes));
  const Dataset validation = test.map(center_crop(32, 32));
  const auto classes = picture_classes(folder);
  const SuperviseOptions options{.replicas = 2, .run_directory = folder + ".run", .shards = 4};
  return supervise(argc, argv, options, [&](Replica& replica) {
    const Conv2D first{16, 3, {.activation = Activation::relu}}, second{32, 3, {.activation = Activation::relu}};
    const Dense hidden{64, {.activation = Activation::relu}}, last{std::ssize(classes)};
    const Sequential model{Input{32, 32, 3}, first, MaxPooling2D{2}, second, MaxPooling2D{2}, Flatten{}, hidden, last};
    const SparseCategoricalCrossentropy loss{{.from_logits = true}};
    Trainer trainer{replica, model, Adam{1e-3F}, loss, {SparseCategoricalAccuracy{}}};
    trainer.attach_list("classes", classes);  // next to the weights in each savepoint
    trainer.fit(
        training.batch(32).prefetch(4, {.threads = 2}),
        {.epochs = 15, .validation = validation.batch(64), .callbacks = {ModelCheckpoint{{.best_by = "val_loss"}}}});
    const auto accuracy = trainer.evaluate(validation.batch(64)).at("sparse_categorical_accuracy");
    if (replica.is_primary()) std::printf("accuracy %.3f\n", accuracy);
  });
}
