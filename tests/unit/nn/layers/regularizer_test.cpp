#include "holdfast/nn/regularizer.h"

#include <gtest/gtest.h>

#include "holdfast/holdfast.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

TEST(Regularizer, ReadsTheNamesThatItWrites) {
  for (const Regularizer& one :
       {Regularizer::l1(), Regularizer::l2(1e-4F), Regularizer::l1_l2(0.5F, 0.1F), Regularizer::orthogonal(),
        Regularizer::orthogonal(0.5F, Regularizer::Lines::columns)}) {
    EXPECT_EQ(Regularizer::from_name(one.name()), one) << one.name();
  }
  EXPECT_EQ(Regularizer::l2(0.01F).name(), "l2(0.01)");
  EXPECT_EQ(Regularizer().name(), "");
}

TEST(Regularizer, RefusesTextsAndNumbersThatAreNotARegularizer) {
  EXPECT_EQ(code_thrown_by([] { Regularizer::l1(-1); }), ErrorCode::invalid_argument);
  for (const char* name : {"l3(0.1)", "l2(0.1", "l2()", "l2(-1)", "l2(nan)", "l1_l2(1)", "l2", "", "orthogonal(1)",
                           "orthogonal(1,lines)", "orthogonal(-1,rows)"}) {
    EXPECT_EQ(code_thrown_by([&] { Regularizer::from_name(name); }), ErrorCode::invalid_argument) << name;
  }
}

TEST(Regularizer, RefusesRowsOfArraysThatAreNotMatrices) {
  const Regularizer orthogonal = Regularizer::orthogonal(0.5F);

  EXPECT_EQ(code_thrown_by([&] {
              Sequential{Input{6, 1}, Conv1D{2, 3, {.kernel_regularizer = orthogonal}}};
            }),
            ErrorCode::invalid_argument);
  EXPECT_EQ((Model(Sequential{Input{6}, Dense{2, {.kernel_regularizer = orthogonal}}}).output_shape()), (Shape{2}));
}

TEST(Regularizer, IsInTheTextOfAModelOnlyWhereItIsSet) {
  const Model plain = Sequential{Input{6, 1}, Conv1D{2, 3}, Flatten{}, Dense{3}};
  const Model model = Sequential{Input{6, 1}, Conv1D{2, 3, {.bias_regularizer = Regularizer::l1(0.5F)}}, Flatten{},
                                 Dense{3, {.kernel_regularizer = Regularizer::l2(0.25F)}}};

  EXPECT_EQ(plain.graph().find("regularizer"), std::string::npos);
  EXPECT_NE(model.graph().find(R"json("bias_regularizer":"l1(0.5)")json"), std::string::npos) << model.graph();
  EXPECT_NE(model.graph().find(R"json("kernel_regularizer":"l2(0.25)")json"), std::string::npos) << model.graph();
  EXPECT_EQ(Model::from_graph(model.graph()).graph(), model.graph());
}

TEST(Regularizer, IsRefusedInTheTextOfALayerThatHasNone) {
  std::string text = Model(Sequential{Input{6, 1}, RMSNormalization{}}).graph();
  const std::string option = R"("epsilon":)";
  text.replace(text.find(option), option.size(), R"json("scale_regularizer":"l2(0.25)",)json" + option);

  EXPECT_EQ(code_thrown_by([&] { Model::from_graph(text); }), ErrorCode::invalid_file);
  const std::string sentence = sentence_thrown_by([&] { Model::from_graph(text); });
  EXPECT_NE(sentence.find("holds 2 values, of which only 1 are known"), std::string::npos) << sentence;
}

}  // namespace
}  // namespace holdfast
