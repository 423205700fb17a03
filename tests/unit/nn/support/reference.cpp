#include "unit/nn/support/reference.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>

namespace holdfast::reference {

static std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

Values dense(const Values& input, std::int64_t inputs, const Values& kernel, const Values& bias, std::int64_t outputs) {
  const std::int64_t rows = static_cast<std::int64_t>(input.size()) / inputs;
  Values output(index(rows * outputs));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t out = 0; out < outputs; ++out) {
      double sum = bias.empty() ? 0 : bias[index(out)];
      for (std::int64_t in = 0; in < inputs; ++in) {
        sum += input[index(row * inputs + in)] * kernel[index(in * outputs + out)];
      }
      output[index(row * outputs + out)] = sum;
    }
  }
  return output;
}

namespace {

struct Border {
  std::int64_t positions = 0;
  std::int64_t before = 0;
};

// As TensorFlow's documentation of "SAME" and "VALID" puts it.
Border border(std::int64_t extent, std::int64_t window, std::int64_t stride, bool is_padded) {
  if (!is_padded) return {(extent - window + stride) / stride, 0};
  const std::int64_t rest = extent % stride;
  const std::int64_t total = std::max<std::int64_t>(window - (rest == 0 ? stride : rest), 0);
  return {(extent + stride - 1) / stride, total / 2};
}

struct Place {
  std::int64_t window_row, window_column;
  std::int64_t input;  // index of channel 0
};

// Calls visit(index of channel 0 of the output, places of the window that lie inside the input) for each position.
void slide(const Images& shape, const Sliding& sliding, std::int64_t output_channels,
           const std::function<void(std::int64_t, const std::vector<Place>&)>& visit) {
  const Border rows = border(shape.rows, sliding.rows, sliding.row_stride, sliding.is_padded);
  const Border columns = border(shape.columns, sliding.columns, sliding.column_stride, sliding.is_padded);
  std::int64_t output = 0;
  for (std::int64_t sample = 0; sample < shape.samples; ++sample) {
    for (std::int64_t i = 0; i < rows.positions; ++i) {
      for (std::int64_t j = 0; j < columns.positions; ++j, output += output_channels) {
        std::vector<Place> places;
        for (std::int64_t k = 0; k < sliding.rows; ++k) {
          for (std::int64_t l = 0; l < sliding.columns; ++l) {
            const std::int64_t row = i * sliding.row_stride + k - rows.before;
            const std::int64_t column = j * sliding.column_stride + l - columns.before;
            if (row < 0 || row >= shape.rows || column < 0 || column >= shape.columns) continue;
            places.push_back({k, l, ((sample * shape.rows + row) * shape.columns + column) * shape.channels});
          }
        }
        visit(output, places);
      }
    }
  }
}

Values pooling(const Values& input, const Images& shape, const Sliding& sliding,
               const std::function<double(const Values&)>& reduce) {
  Values output;
  slide(shape, sliding, shape.channels, [&](std::int64_t, const std::vector<Place>& places) {
    for (std::int64_t channel = 0; channel < shape.channels; ++channel) {
      Values window;
      for (const Place& place : places) window.push_back(input[index(place.input + channel)]);
      output.push_back(reduce(window));
    }
  });
  return output;
}

}  // namespace

Values convolution(const Values& input, const Images& shape, const Values& kernel, const Values& bias,
                   std::int64_t filters, const Sliding& sliding) {
  Values output;
  slide(shape, sliding, filters, [&](std::int64_t, const std::vector<Place>& places) {
    for (std::int64_t filter = 0; filter < filters; ++filter) {
      double sum = bias.empty() ? 0 : bias[index(filter)];
      for (const Place& place : places) {
        const std::int64_t weights = (place.window_row * sliding.columns + place.window_column) * shape.channels;
        for (std::int64_t channel = 0; channel < shape.channels; ++channel) {
          sum += input[index(place.input + channel)] * kernel[index((weights + channel) * filters + filter)];
        }
      }
      output.push_back(sum);
    }
  });
  return output;
}

Values max_pooling(const Values& input, const Images& shape, const Sliding& sliding) {
  return pooling(input, shape, sliding,
                 [](const Values& window) { return *std::max_element(window.begin(), window.end()); });
}

Values average_pooling(const Values& input, const Images& shape, const Sliding& sliding) {
  return pooling(input, shape, sliding, [](const Values& window) {
    double sum = 0;
    for (const double value : window) sum += value;
    return sum / static_cast<double>(window.size());
  });
}

static Values softmax(const Values& input, std::int64_t channels) {
  Values output;
  for (std::size_t row = 0; row < input.size(); row += index(channels)) {
    double sum = 0;
    for (std::size_t i = row; i < row + index(channels); ++i) sum += std::exp(input[i]);
    for (std::size_t i = row; i < row + index(channels); ++i) output.push_back(std::exp(input[i]) / sum);
  }
  return output;
}

static double elementwise(const std::string& name, double x) {
  if (name == "linear") return x;
  if (name == "relu") return std::max(x, 0.0);
  if (name == "tanh") return std::tanh(x);
  if (name == "sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "gelu") return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
  throw std::invalid_argument(name);
}

Values activation(const std::string& name, const Values& input, std::int64_t channels) {
  if (name == "softmax") return softmax(input, channels);
  Values output;
  for (const double value : input) output.push_back(elementwise(name, value));
  return output;
}

Statistics statistics(const Values& input, std::int64_t channels) {
  const auto rows = static_cast<double>(input.size() / index(channels));
  Statistics statistics{Values(index(channels)), Values(index(channels))};
  for (std::size_t i = 0; i < input.size(); ++i) statistics.mean[i % index(channels)] += input[i] / rows;
  for (std::size_t i = 0; i < input.size(); ++i) {
    const double deviation = input[i] - statistics.mean[i % index(channels)];
    statistics.variance[i % index(channels)] += deviation * deviation / rows;
  }
  return statistics;
}

Values batch_normalization(const Values& input, const Statistics& statistics, const Values& gamma, const Values& beta,
                           double epsilon) {
  Values output;
  for (std::size_t i = 0; i < input.size(); ++i) {
    const std::size_t channel = i % gamma.size();
    const double deviation = input[i] - statistics.mean[channel];
    output.push_back(deviation / std::sqrt(statistics.variance[channel] + epsilon) * gamma[channel] + beta[channel]);
  }
  return output;
}

}  // namespace holdfast::reference
