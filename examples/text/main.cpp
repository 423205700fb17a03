// A language model of characters, GPT-2 or an LSTM, learns a text and writes some of its own at the end:
//
//   text [--text FILE] [--bytes] [--model gpt|lstm] [--batch N] [--replicas N | --devices D,D...] [--shards N]
//        [--steps N] [--seed N] [--run-dir DIR] [--report FILE] [--inject rank=1,step=30,fault=kill]

#include <cstdio>

#include "example_options.h"
#include "holdfast/holdfast.h"
#include "writer.h"

namespace {

using namespace holdfast;

constexpr std::int64_t kLength = 64;
constexpr std::int64_t kWritten = 200;

Model language_model(const std::string& name, std::int64_t vocabulary) {
  if (name == "lstm") return lstm_language_model({.vocabulary = vocabulary, .length = kLength, .units = 256});
  return gpt2({.vocabulary = vocabulary, .positions = kLength, .width = 128, .layers = 4, .heads = 4});
}

// A text for examples without a file: a function of the seed.
Text drawn_sentences(std::uint64_t seed) {
  const std::vector<std::string> things = {"cat", "dog", "bird", "child", "river", "stone"};
  const std::vector<std::string> deeds = {"sees", "finds", "follows", "forgets"};
  std::string text;
  Random random(seed, Purpose::synthetic_data, 0, 0);
  const auto one_of = [&](const std::vector<std::string>& words) { return words[random.below(words.size())]; };
  for (int i = 0; i < 600; ++i) {
    // One statement for each draw: compilers differ in the order in which they evaluate operands.
    text += "the " + one_of(things);
    text += " " + one_of(deeds);
    text += " a " + one_of(things) + ".\n";
  }
  return Text(text);
}

// A window has one character more than its length, and both parts of the text need one at least.
void refuse_short(const std::string& path, const Text& text) {
  constexpr std::int64_t kLeast = 10 * (kLength + 1);
  if (text.size() >= kLeast) return;
  throw Error(ErrorCode::invalid_argument, path + " has " + std::to_string(text.size()) +
                                               " characters, and a text needs at least " + std::to_string(kLeast) +
                                               ": a tenth of it is for validation, in windows of " +
                                               std::to_string(kLength) + "; take a longer text");
}

void train(Replica& replica, const ExampleOptions& options) {
  const TextUnit unit = options.reads_bytes ? TextUnit::bytes : TextUnit::characters;
  const Text all = options.text.empty() ? drawn_sentences(options.run.seed) : read_text(options.text, {.unit = unit});
  refuse_short(options.text, all);
  const auto [training, validation] = all.split(0.1);
  const TextEncoder encoder = TextEncoder::fit(training, {.unknown = UnknownCategory::other});
  const auto windows = [&](const Text& text) {
    return Tokens(encoder.encode(text.content())).windows(kLength, {.vocabulary = encoder.ids()});
  };

  Trainer trainer(replica, language_model(options.model, encoder.ids()), AdamW{1e-3F},
                  SparseCategoricalCrossentropy{{.from_logits = true}});
  trainer.attach("text", encoder.text());  // each savepoint can be used without the text
  const FitResult fit = trainer.fit(windows(training).shuffle().batch(options.batch),
                                    {.validation = windows(validation).batch(options.batch),
                                     .steps_per_epoch = options.steps,
                                     .callbacks = {ModelCheckpoint{{.every_steps = 100}}}});
  if (!replica.is_primary()) return;
  write_report(trainer, {{"validation_loss", fit.results.at("val_loss")}}, options);
  for (const float temperature : {0.0F, 0.8F}) {
    const Writer writer(trainer, encoder, {.length = kLength, .temperature = temperature, .seed = options.run.seed});
    std::printf("--- temperature %.1f\n%s\n", temperature, writer.continued(validation, kWritten).c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  ExampleOptions options = {.description = "A language model that is mirrored, killed and recovered.",
                            .run = {.replicas = 2, .run_directory = "text-run", .shards = 4},
                            .steps = 300,
                            .takes_text = true,
                            .models = {"gpt", "lstm"},
                            .model = "gpt"};
  if (const std::optional<int> exit_code = read_options(argc, argv, options)) return *exit_code;
  return supervise(argc, argv, options.run, [&](Replica& replica) { train(replica, options); });
}
