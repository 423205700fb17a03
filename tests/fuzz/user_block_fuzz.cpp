// Reads the header of an array file, unchanged and with a correct digest, which no mutation would find.

#include <algorithm>

#include "container/user_block.h"
#include "fuzz_input.h"
#include "holdfast/base/digest.h"

using namespace holdfast;
using namespace holdfast::format;

static void decode(std::span<const std::byte> head) {
  // As the header of a file that ends with it, and of a file as long as the header says.
  fuzz::succeeds([&] { decode_user_block("a", head, head.size()); });
  if (head.size() < 24) return;
  std::uint64_t stated_bytes = 0;
  for (std::size_t i = 0; i < 8; ++i) stated_bytes |= std::to_integer<std::uint64_t>(head[16 + i]) << (8 * i);
  UserBlock block;
  if (!fuzz::succeeds([&] { block = decode_user_block("a", head, stated_bytes); })) return;
  HOLDFAST_ASSERT(block.file_bytes == stated_bytes && block.index_offset + block.index_bytes == stated_bytes);
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, std::min(size, kUserBlockBytes)));
  decode(bytes);
  if (bytes.size() < kUserBlockBytes) return 0;
  std::vector<std::byte> head(bytes.begin(), bytes.end());
  const std::size_t digest_offset = kUserBlockBytes - sizeof(Digest::bytes);
  const Digest right = digest(std::span(head).first(digest_offset));
  std::copy_n(reinterpret_cast<const std::byte*>(right.bytes.data()), right.bytes.size(), head.begin() + digest_offset);
  decode(head);
  return 0;
}
