// Reads the index of samples that skip_bad() leaves out: the input as a whole file, and as the content of one whose
// digest is right, which no mutation would find. Positions that were accepted are in the order and range that stages
// assert, and the index that holds them reads back as the same.

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "data/skipped/bad_samples.h"
#include "fuzz_input.h"
#include "holdfast/base/digest.h"

using namespace holdfast;

static constexpr std::int64_t kSamples = 1000;
static const std::string kMadeOf = "made of this";

static void read(const std::string& text) {
  BadSamples bad;
  if (!fuzz::succeeds([&] { bad = bad_samples_from_text(text, kMadeOf, kSamples, "bad.json"); })) return;
  HOLDFAST_ASSERT(std::ranges::adjacent_find(bad.positions, std::ranges::greater_equal()) == bad.positions.end());
  HOLDFAST_ASSERT(bad.positions.empty() || bad.positions.back() < kSamples);
  const std::string written = index_text(bad, kMadeOf, kSamples);
  const BadSamples again = bad_samples_from_text(written, kMadeOf, kSamples, "bad.json");
  HOLDFAST_ASSERT(again.positions == bad.positions);
  // Nothing else was in the text: a number that is not one of a sample must not become one.
  using nlohmann::json;
  const json content = json::parse(json::parse(text).at("content").get<std::string>());
  HOLDFAST_ASSERT(content.at("bad") == json(bad.positions));
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  read(input);
  const std::string digest_of_input = digest(std::as_bytes(std::span(input))).hex();
  const nlohmann::json index = {
      {"format", "holdfast bad samples"}, {"version", 1}, {"digest", digest_of_input}, {"content", input}};
  try {
    read(index.dump());
  } catch (const nlohmann::json::exception&) {
    // A text that is not UTF-8 cannot be the content of JSON.
  }
  return 0;
}
