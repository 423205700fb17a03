#include <gtest/gtest.h>

#include "holdfast/holdfast.h"

namespace holdfast {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Drawing, HasABoxForEachCallAndAnArrowForEachInput) {
  const Value x = input({4}, {.name = "pixels"});
  const Dense shared{4, {.name = "shared"}};
  const Value a = shared(x);

  EXPECT_EQ(Model(x, Add{{.name = "total"}}(a, shared(a))).drawing(),
            "digraph model {\n"
            "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\"];\n"
            "  edge [fontname=\"Helvetica\", fontsize=10];\n"
            "  input0 [label=\"pixels\\nInput\", fillcolor=\"#dcebfa\"];\n"
            "  call0 [label=\"shared (call 1)\\nDense\", fillcolor=\"#f4f4f4\"];\n"
            "  input0 -> call0;\n"
            "  call1 [label=\"shared (call 2)\\nDense\", fillcolor=\"#f4f4f4\"];\n"
            "  call0 -> call1;\n"
            "  call2 [label=\"total\\nAdd\", fillcolor=\"#f4f4f4\"];\n"
            "  call0 -> call2;\n"
            "  call1 -> call2;\n"
            "  output0 [label=\"total\\nOutput\", fillcolor=\"#dcf5e1\"];\n"
            "  call2 -> output0;\n"
            "}\n");
}

TEST(Drawing, ShowsShapesAtTheArrows) {
  const Sequential model{Input{5, 5, 1}, Flatten{}, Dense{3}};
  const std::string drawing = model.drawing({.shows_shapes = true});

  EXPECT_TRUE(has(drawing, "input0 -> call0 [label=\"[5, 5, 1]\"];")) << drawing;
  EXPECT_TRUE(has(drawing, "call0 -> call1 [label=\"[25]\"];")) << drawing;
  EXPECT_TRUE(has(drawing, "call1 -> output0 [label=\"[3]\"];")) << drawing;
}

TEST(Drawing, EscapesNamesFromOutside) {
  const Value x = input({4}, {.name = "a\"];\n evil [label=\"\\N &lt; \x1b"});
  const std::string drawing = Model(x, relu(x)).drawing();

  EXPECT_TRUE(has(drawing, "[label=\"a\\\"];\\\\x0a evil [label=\\\"\\\\N &amp;lt; \\\\x1b\\nInput\"")) << drawing;
}

TEST(Drawing, CutsLongNames) {
  const Value x = input({4}, {.name = std::string(100'000, 'n')});

  EXPECT_LT(Model(x, relu(x)).drawing().size(), 2000U);
}

}  // namespace
}  // namespace holdfast
