// Reads text encoders. One that was accepted has the same text again, and decodes what it encodes.

#include "fuzz_input.h"
#include "holdfast/data/text.h"

using namespace holdfast;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzz::succeeds([&] {
    const TextEncoder encoder = TextEncoder::from_text(text);
    HOLDFAST_ASSERT(TextEncoder::from_text(encoder.text()).text() == encoder.text());
    std::string all;
    for (const std::string& character : encoder.vocabulary()) all += character;
    const Tensor ids = encoder.encode(all);
    HOLDFAST_ASSERT(encoder.decode(ids.elements<std::int32_t>()) == all);
  });
  // Any bytes are a text of bytes, and some are one of characters.
  const auto fits = [&](TextUnit unit) {
    const Text content(std::string(text), unit);
    const TextEncoder encoder = TextEncoder::fit(content);
    const Tensor ids = encoder.encode(content.content());
    HOLDFAST_ASSERT(ids.shape()[0] == content.size());
    HOLDFAST_ASSERT(encoder.decode(ids.elements<std::int32_t>()) == content.content());
  };
  HOLDFAST_ASSERT(fuzz::succeeds([&] { fits(TextUnit::bytes); }));
  fuzz::succeeds([&] { fits(TextUnit::characters); });
  return 0;
}
