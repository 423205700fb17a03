#include "writer.h"

#include <algorithm>
#include <cmath>

using namespace holdfast;

std::string Writer::continued(const Text& text, std::int64_t count) const {
  const Tensor encoded = encoder_.encode(text.content());
  const std::span<const std::int32_t> begin =
      encoded.elements<std::int32_t>().first(static_cast<std::size_t>(options_.length / 4));
  std::vector<std::int32_t> ids(begin.begin(), begin.end());
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(next_id(ids));
  return encoder_.decode(ids);
}

std::int32_t Writer::next_id(const std::vector<std::int32_t>& ids) const {
  const auto length = static_cast<std::size_t>(options_.length);
  const std::size_t seen = std::min(ids.size(), length);
  // What stands after the last id does not matter: no score depends on a later one.
  std::vector<std::int32_t> sample(length, 0);
  std::copy(ids.end() - static_cast<std::ptrdiff_t>(seen), ids.end(), sample.begin());
  const std::vector<Tensor> scores = trainer_.predict(std::vector<Tensor>{Tensor({1, options_.length}, sample)}, 1);
  const auto classes = static_cast<std::size_t>(encoder_.ids());
  return chosen(scores[0].sample(0).subspan((seen - 1) * classes, classes), ids.size());
}

std::int32_t Writer::chosen(std::span<const float> scores, std::size_t position) const {
  // Id 0 stands for all characters that the text does not have. Nothing can be written for it. Bytes have no such id.
  const std::size_t first = encoder_.vocabulary().empty() ? 0 : 1;
  return static_cast<std::int32_t>(first + drawn(scores.subspan(first), position));
}

std::size_t Writer::drawn(std::span<const float> scores, std::size_t position) const {
  const auto likeliest = std::max_element(scores.begin(), scores.end());
  if (options_.temperature == 0) return static_cast<std::size_t>(likeliest - scores.begin());
  // Softmax of the scores, divided by the temperature; the largest one is subtracted so that none is infinite.
  std::vector<double> weights;
  double sum = 0;
  for (const float score : scores) sum += weights.emplace_back(std::exp((score - *likeliest) / options_.temperature));
  // The draw is a function of seed and position, so the same weights write the same text.
  double left = Random(options_.seed, Purpose::user, 0, position).uniform() * sum;
  std::size_t id = 0;
  while (id + 1 < weights.size() && left >= weights[id]) left -= weights[id++];
  return id;
}
