#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/embedding.h"
#include "holdfast/nn/models.h"
#include "holdfast/nn/recurrent_layers.h"
#include "nn/layers/noise/noise.h"
#include "nn/models/model_options.h"
#include "nn/operations/checks.h"

namespace holdfast {

static void check_lstm_language_model(const LstmLanguageModelOptions& options) {
  constexpr std::string_view kName = "lstm_language_model()";
  check_extent(kName, "a vocabulary", options.vocabulary);
  check_extent(kName, "a length", options.length);
  check_extent(kName, "a width", options.width);
  check_extent(kName, "a number of units", options.units);
  check_extent(kName, "a number of layers", options.layers);
  check_rate(kName, options.dropout);
  if (!options.tied_output || options.units == options.width) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} with a tied output needs as many units as the width of its table, not {} and {}; make "
                          "them equal, or leave tied_output out",
                          kName, options.units, options.width));
}

Model lstm_language_model(const LstmLanguageModelOptions& options) {
  check_lstm_language_model(options);
  const ReversibleEmbedding words{options.vocabulary, options.width, {.name = "words"}};

  const Value ids = input({options.length}, {.dtype = DType::i32, .name = "ids"});
  Value x = words(ids);
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    x = dropped_out(x, options.dropout, fmt::format("dropout.{}", layer));
    x = LSTM{options.units, {.return_sequences = true, .name = fmt::format("lstm.{}", layer)}}(x);
  }
  x = dropped_out(x, options.dropout, fmt::format("dropout.{}", options.layers));
  if (options.tied_output) return Model(ids, words.reverse(x));
  return Model(ids, Dense{options.vocabulary, {.name = "scores"}}(x));
}

}  // namespace holdfast
