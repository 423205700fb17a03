// model_program MODEL.h5 VALUES SAMPLES OUTPUTS: predicts with a model of one input and one output. VALUES holds the
// floats of SAMPLES samples, OUTPUTS gets those of the predictions.

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "holdfast/holdfast.h"

using namespace holdfast;

static void predict(const std::string& path, const std::string& values, std::int64_t samples,
                    const std::string& outputs) {
  const Model model = load_model(path);
  std::vector<std::int64_t> extents = model.input_shape().extents();
  extents.insert(extents.begin(), samples);
  Tensor x{Shape(extents)};
  std::ifstream(values, std::ios::binary)
      .read(reinterpret_cast<char*>(x.values().data()), static_cast<std::streamsize>(x.values().size_bytes()));
  const Tensor y = model.predict(x);
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
