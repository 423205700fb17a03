#include <holdfast/holdfast.h>

#include <algorithm>
#include <cstdio>

using namespace holdfast;

int main() {
  const Sequential model = load_model(best_savepoint("run", "val_loss"));
  const Dataset digits = read_idx("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz");
  Tensor images{Shape{10, 28, 28, 1}};
  Tensor labels{Shape{10}};
  for (int i = 0; i < 10; ++i) digits.load(0, 0, i, {images.sample(i), labels.sample(i)});

  const Tensor scores = model.predict(images);  // [10, 10]: a score for each class, of each image
  for (int i = 0; i < 10; ++i) {
    const std::span<const float> score = scores.sample(i);
    std::printf("%.0f: %td\n", labels.sample(i)[0], std::max_element(score.begin(), score.end()) - score.begin());
  }
}
