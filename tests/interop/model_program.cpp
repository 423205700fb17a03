// model_program MODEL.h5 VALUES SAMPLES OUTPUTS: predicts with a model of one output. VALUES holds the floats of
// SAMPLES samples, or their ids in 32 bits where the model takes such: those of the first input, then those of the next
// one. OUTPUTS gets the floats of the predictions.

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "holdfast/holdfast.h"

using namespace holdfast;

template <typename T>
static Tensor read(std::ifstream& file, const Shape& shape) {
  std::vector<T> values(static_cast<std::size_t>(shape.element_count()));
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  return Tensor(shape, values);
}

static void predict(const std::string& path, const std::string& values, std::int64_t samples,
                    const std::string& outputs) {
  const Model model = load_model(path);
  std::ifstream file(values, std::ios::binary);
  std::vector<Tensor> inputs;
  for (const ModelArray& input : model.inputs()) {
    std::vector<std::int64_t> extents = input.spec.shape.extents();
    extents.insert(extents.begin(), samples);
    const bool has_ids = input.spec.dtype == DType::i32;
    inputs.push_back(has_ids ? read<std::int32_t>(file, Shape(extents)) : read<float>(file, Shape(extents)));
  }
  const Tensor y = model.predict(inputs)[0];
  std::ofstream(outputs, std::ios::binary)
      .write(reinterpret_cast<const char*>(y.values().data()), static_cast<std::streamsize>(y.values().size_bytes()));
}

int main(int argc, char** argv) try {
  if (argc != 5) return 2;
  predict(argv[1], argv[2], std::stoll(argv[3]), argv[4]);
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s: %s\n", std::string(to_string(error.code())).c_str(), error.what());
  return 1;
}
