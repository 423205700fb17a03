// Present models keep their bits. digests.json has the digests of trained weights by the processor and the arithmetic
// that gave them: oneDNN's products have other bits with other instructions, sizes of caches and releases. Our own
// loops have the same bits everywhere, so that the model without products has one digest. A change of our arithmetic
// that is meant raises the version of our kernels. Record the digests anew then, from the text that the test shows; on
// x86-64 DNNL_MAX_CPU_ISA=AVX and =SSE41 give those of other instructions.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "integration/models/support/small_models.h"
#include "nn/program/model_program.h"
#include "support/folders.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

std::string arithmetic_here() {
  return ModelProgram(small_models().at("elements").model, 1).arithmetic();
}

// "amd, oneDNN 2.6.3, isa avx2, kernels 2, 1 thread per shard"
std::string place_here() {
  std::string maker = "other";
#ifdef __x86_64__
  if (__builtin_cpu_is("amd")) maker = "amd";
  if (__builtin_cpu_is("intel")) maker = "intel";
#endif
  return maker + ", " + arithmetic_here();
}

// "kernels 2"
std::string kernels_in(const std::string& arithmetic) {
  const std::size_t begin = arithmetic.find("kernels");
  return arithmetic.substr(begin, arithmetic.find(',', begin) - begin);
}

Json recorded() {
  std::ifstream file(source_folder() + "/tests/integration/models/digests.json");
  return Json::parse(file);
}

Json digests_of_models_with_products() {
  Json digests = Json::object();
  for (const auto& [name, small] : small_models()) {
    if (name != "elements") digests[name] = digest_after_fifty_steps(small);
  }
  return digests;
}

TEST(Digests, AreTheSameEverywhereForAModelWithoutProducts) {
  const std::string kernels = kernels_in(arithmetic_here());

  EXPECT_EQ(digest_after_fifty_steps(small_models().at("elements")), recorded().at("elements").value(kernels, ""))
      << kernels;
}

TEST(Digests, AreThoseThatWereRecordedWithTheSameArithmetic) {
  const std::string place = place_here();
  const Json of_models = recorded().at("models");
  const Json found = digests_of_models_with_products();

  bool is_any_of_these_kernels = false;
  for (const auto& item : of_models.items()) is_any_of_these_kernels |= kernels_in(item.key()) == kernels_in(place);
  ASSERT_TRUE(is_any_of_these_kernels) << "record \"" << place << "\": " << found.dump(1);
  if (!of_models.contains(place)) {
    GTEST_SKIP() << "no digests were recorded with this arithmetic: \"" << place << "\": " << found.dump();
  }
  EXPECT_EQ(found, of_models.at(place));
}

}  // namespace
}  // namespace holdfast
