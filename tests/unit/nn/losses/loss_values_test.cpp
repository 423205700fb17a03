// What the cases of loss_cases_test.cpp do not meet: extreme numbers, ties, NaN, refusals, and texts of configurations.

#include "nn/losses/loss_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "holdfast/holdfast.h"
#include "nn/program/value_function.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using Row = std::vector<float>;

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kUnboundedScore = std::numeric_limits<float>::infinity();

float loss_of_row(const Loss& loss, const Row& outputs, const Row& targets) {
  return loss.evaluate(outputs, targets, 1, 1, {});
}

Row gradient_of_row(const Loss& loss, const Row& outputs, const Row& targets) {
  Row gradient(outputs.size(), 99);
  loss.evaluate(outputs, targets, 1, 1, gradient);
  return gradient;
}

TEST(LogCosh, StaysFiniteForAnyDistance) {
  EXPECT_FLOAT_EQ(loss_of_row(losses::LogCosh(), {3e38F}, {0}), 3e38F);
  EXPECT_FLOAT_EQ(loss_of_row(losses::LogCosh(), {-3e38F}, {0}), 3e38F);
  EXPECT_THAT(gradient_of_row(losses::LogCosh(), {3e38F, -3e38F, 1}, {0, 0, 1}), ElementsAre(1.0F / 3, -1.0F / 3, 0));
}

TEST(Huber, IsQuadraticUpToDelta) {
  EXPECT_THAT(gradient_of_row(losses::Huber({.delta = 2}), {2, 3, -3, 0}, {0, 0, 0, 0}),
              ElementsAre(0.5F, 0.5F, -0.5F, 0));
  EXPECT_EQ(loss_of_row(losses::Huber({.delta = 2}), {2}, {0}), 2.0F);
  EXPECT_EQ(loss_of_row(losses::Huber({.delta = 2}), {4}, {0}), 6.0F);
}

TEST(MeanAbsoluteErrorLoss, HasNoGradientAtItsTarget) {
  EXPECT_THAT(gradient_of_row(losses::MeanAbsoluteError(), {1, 2}, {1, 0}), ElementsAre(0, 0.5F));
}

TEST(CosineSimilarityLoss, LeavesAVectorOfZerosAsItIs) {
  EXPECT_EQ(loss_of_row(losses::CosineSimilarity(), {0, 0}, {1, 0}), 0.0F);
  EXPECT_THAT(gradient_of_row(losses::CosineSimilarity(), {0, 0}, {0, 0}), Each(0.0F));
}

TEST(Hinge, TakesALabelOfZeroForMinusOne) {
  EXPECT_EQ(loss_of_row(losses::Hinge(), {0.5F, -3}, {0, 1}), loss_of_row(losses::Hinge(), {0.5F, -3}, {-1, 1}));
}

TEST(FocalCrossentropies, StayFiniteForSuresAndFractionalGamma) {
  const losses::BinaryFocalCrossentropy of_scores({.gamma = 0.5F, .from_logits = true}), of_numbers({.gamma = 0.5F});
  const losses::CategoricalFocalCrossentropy of_classes({.gamma = 0.5F, .from_logits = true});

  EXPECT_EQ(loss_of_row(of_scores, {100, -100}, {1, 0}), 0.0F);
  EXPECT_THAT(gradient_of_row(of_scores, {100, -100}, {1, 0}), Each(testing::FloatNear(0, 1e-6F)));
  EXPECT_THAT(gradient_of_row(of_numbers, {1, 0}, {1, 0}), Each(0.0F));
  EXPECT_FLOAT_EQ(loss_of_row(of_scores, {-100}, {1}), 100.0F);
  EXPECT_FLOAT_EQ(loss_of_row(of_classes, {0, 100}, {1, 0}), 25.0F);
}

TEST(LossesOfValues, LetANanShow) {
  const losses::MeanAbsoluteError absolute;
  const losses::Huber huber;
  const losses::LogCosh cosh;
  const losses::Hinge hinge;
  const losses::CategoricalHinge categorical;
  const losses::KLDivergence divergence;
  const losses::BinaryFocalCrossentropy focal;
  for (const Loss* loss :
       std::initializer_list<const Loss*>{&absolute, &huber, &cosh, &hinge, &categorical, &divergence, &focal}) {
    EXPECT_TRUE(std::isnan(loss_of_row(*loss, {0.5F, kNotANumber}, {1, 0}))) << loss->name();
  }
}

TEST(LossesOfValues, DescribeThemselvesByKind) {
  EXPECT_EQ(losses::MeanAbsoluteError().configuration(), R"({"kind":"mean_absolute_error"})");
  EXPECT_EQ(losses::Huber({.delta = 0.1F}).configuration(), R"({"kind":"huber","delta":0.1})");
  EXPECT_EQ(losses::CosineSimilarity().configuration(), R"({"kind":"cosine_similarity","axis":-1})");
  EXPECT_EQ(BinaryCrossentropy({.label_smoothing = 0.1F}).configuration(),
            R"({"kind":"binary_crossentropy","from_logits":false,"label_smoothing":0.1})");
  EXPECT_EQ(metrics::Precision({.class_id = 1, .name = "p"}).configuration(),
            R"({"kind":"precision","thresholds":0.5,"class_id":1,"name":"p"})");
  EXPECT_EQ(metrics::Recall({.top_k = 2}).configuration(),
            R"({"kind":"recall","thresholds":null,"top_k":2,"name":"recall"})");
  EXPECT_EQ(metrics::FBetaScore({.beta = 2}).configuration(),
            R"({"kind":"fbeta_score","average":"macro","beta":2.0,"threshold":null,"name":"fbeta_score"})");
  EXPECT_EQ(metrics::LogCoshError().name(), "logcosh");
}

TEST(LossesOfValues, RefuseOptionsOutOfRange) {
  for (const float delta : {0.0F, -1.0F, kNotANumber, kUnboundedScore}) {
    EXPECT_THAT(sentence_thrown_by([&] { losses::Huber({.delta = delta}); }), HasSubstr("huber was given .delta = "));
  }
  EXPECT_THAT(sentence_thrown_by([] { losses::BinaryFocalCrossentropy({.alpha = 1.5F}); }),
              HasSubstr(".alpha = 1.5; it is a number from 0 to 1"));
  EXPECT_THAT(sentence_thrown_by([] { losses::CategoricalFocalCrossentropy({.gamma = -1}); }),
              HasSubstr(".gamma = -1; it is a finite number from 0 on"));
  EXPECT_THAT(sentence_thrown_by([] { BinaryCrossentropy({.label_smoothing = kNotANumber}); }),
              HasSubstr("binary_crossentropy was given .label_smoothing = nan"));
  EXPECT_THAT(sentence_thrown_by([] { CategoricalCrossentropy({.label_smoothing = 2}); }), HasSubstr("from 0 to 1"));
  EXPECT_THAT(sentence_thrown_by([] { SparseCategoricalCrossentropy({.label_smoothing = 0.1F}); }),
              HasSubstr("without from_logits; end the model with scores"));
  EXPECT_THAT(sentence_thrown_by([] { SparseCategoricalCrossentropy({.from_logits = true, .label_smoothing = 1.5F}); }),
              HasSubstr("it is a number from 0 to 1"));
  constexpr std::int64_t kExact = std::int64_t{1} << 24;
  for (const std::int64_t ignored :
       {std::numeric_limits<std::int64_t>::min(), -kExact - 1, kExact + 1, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_THAT(sentence_thrown_by([&] { SparseCategoricalCrossentropy({.ignore_class = ignored}); }),
                HasSubstr("it is a number from -2^24 to 2^24"));
  }
  EXPECT_NO_THROW(SparseCategoricalCrossentropy({.ignore_class = -kExact}));
  EXPECT_THAT(sentence_thrown_by([&] { metrics::Perplexity({.ignore_class = kExact + 1}); }),
              HasSubstr("perplexity was given .ignore_class = 16777217"));
}

TEST(MetricsOfValues, RefuseOptionsOutOfRange) {
  EXPECT_THAT(sentence_thrown_by([] { metrics::TopKCategoricalAccuracy({.k = 0}); }), HasSubstr(".k = 0"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::Precision({.threshold = kNotANumber}); }), HasSubstr("nan"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::Recall({.class_id = -1}); }), HasSubstr("counted from 0"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::Recall({.top_k = 0}); }), HasSubstr(".top_k = 0; it is at least 1"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::FBetaScore({.beta = 0}); }), HasSubstr(".beta = 0"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::FBetaScore({.beta = kNotANumber}); }), HasSubstr(".beta = nan"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::F1Score({.threshold = 1.5F}); }), HasSubstr(".threshold = 1.5"));
}

float sum_of_rows(const Metric& metric, const Row& outputs, const Row& targets, std::int64_t samples) {
  return metric.sum(outputs, targets, samples);
}

TEST(MetricsOfValues, RefuseOutputsThatDoNotFit) {
  EXPECT_THAT(sentence_thrown_by([] { sum_of_rows(metrics::TopKCategoricalAccuracy(), Row(3), Row(3), 1); }),
              HasSubstr(".k = 5, but the outputs have 3 classes"));
  EXPECT_THAT(sentence_thrown_by([] { sum_of_rows(metrics::Precision({.class_id = 3}), Row(3), Row(3), 1); }),
              HasSubstr(".class_id = 3, but the outputs have 3 classes"));
  EXPECT_THAT(sentence_thrown_by([] { sum_of_rows(metrics::Recall({.top_k = 4}), Row(3), Row(3), 1); }),
              HasSubstr(".top_k = 4, but the outputs have 3 classes"));
  EXPECT_THAT(sentence_thrown_by([] { sum_of_rows(metrics::R2Score(), Row(1025), Row(1025), 1); }),
              HasSubstr("at most 1024"));
}

// The last axis of a shape without axes was read and written. A model may have such an output, and a loss that takes
// class numbers has such targets.
TEST(MetricsOfValues, RefuseOutputsAndTargetsWithoutAnAxisOfClasses) {
  const metrics::TopKCategoricalAccuracy top({.k = 1});
  const metrics::SparseTopKCategoricalAccuracy sparse_top({.k = 1});
  const metrics::CategoricalCrossentropy crossentropy;
  const metrics::SparseCategoricalCrossentropy sparse_crossentropy;
  const metrics::Perplexity perplexity;
  for (const ValueMetric* const metric :
       std::initializer_list<const ValueMetric*>{&top, &sparse_top, &crossentropy, &sparse_crossentropy, &perplexity}) {
    SCOPED_TRACE(metric->name());
    EXPECT_THAT(sentence_thrown_by([&] { graph_of_metric_sums(*metric, {.outputs = {}, .targets = {}}); }),
                HasSubstr("needs a model whose output has an axis, the classes; it has the shape []"));
  }
  for (const ValueMetric* const metric : std::initializer_list<const ValueMetric*>{&top, &crossentropy}) {
    SCOPED_TRACE(metric->name());
    EXPECT_THAT(sentence_thrown_by([&] { graph_of_metric_sums(*metric, {.outputs = Shape{3}, .targets = {}}); }),
                HasSubstr("takes a row with a number for each class as target"));
  }
}

TEST(TopK, CountsEqualOutputsForTheTarget) {
  const metrics::SparseTopKCategoricalAccuracy best({.k = 1}), two({.k = 2});

  EXPECT_EQ(sum_of_rows(best, {0.5F, 0.5F, 0}, {1}, 1), 1.0F);
  EXPECT_EQ(sum_of_rows(best, {0.5F, 0.4F, 0}, {1}, 1), 0.0F);
  EXPECT_EQ(sum_of_rows(two, {0.5F, 0.4F, 0}, {1}, 1), 1.0F);
}

// Outputs of masked classes were found a second time, as if they had just been taken out.
TEST(Recall, FindsEachClassOnceAmongTheLargestAlsoWhereSomeAreMinusInfinity) {
  const metrics::Precision precision({.top_k = 3});

  EXPECT_EQ(sum_of_rows(precision, {5, -kUnboundedScore, -kUnboundedScore, -kUnboundedScore}, {1, 0, 0, 0}, 1), 1.0F);
  EXPECT_EQ(sum_of_rows(metrics::Recall({.top_k = 3}), {5, -kUnboundedScore, 4, -kUnboundedScore}, {1, 0, 1, 0}, 1),
            2.0F);
}

TEST(TopK, CountsNanAndImpossibleTargetsAsMisses) {
  const metrics::SparseTopKCategoricalAccuracy all({.k = 3}), two({.k = 2});

  EXPECT_EQ(sum_of_rows(all, {kNotANumber, 1, 2}, {0}, 1), 0.0F);
  EXPECT_EQ(sum_of_rows(two, {kNotANumber, 1, 2}, {1}, 1), 0.0F);
  EXPECT_EQ(sum_of_rows(two, {kNotANumber, 1, 2}, {2}, 1), 1.0F);
  EXPECT_EQ(sum_of_rows(all, {1, 2, 3, 1, 2, 3, 1, 2, 3}, {3, -1, 0.5F}, 3), 0.0F);
}

TEST(Counts, AddTheElementsOfASample) {
  EXPECT_EQ(sum_of_rows(metrics::TruePositives(), {0.9F, 0.8F, 0.1F, 0.7F, 0.2F, 0.5F}, {1, 1, 1, 0, 0, 1}, 2), 2.0F);
  EXPECT_EQ(sum_of_rows(metrics::FalseNegatives(), {0.9F, kNotANumber, 0.1F, 0.5F}, {1, 1, 0, 1}, 2), 2.0F);
}

TEST(Lists, HaveANameForEachNumber) {
  EXPECT_THAT(metrics::Precision({.thresholds = {0.25F, 0.5F}}).result_names(Shape{3}),
              ElementsAre("precision_0.25", "precision_0.5"));
  EXPECT_THAT(metrics::F1Score({.average = metrics::FBetaAverage::none, .name = "f"}).result_names(Shape{5, 2}),
              ElementsAre("f_0", "f_1"));
  EXPECT_THAT(metrics::R2Score({.class_aggregation = metrics::R2Aggregation::none}).result_names(Shape{2}),
              ElementsAre("r2_score_0", "r2_score_1"));
  EXPECT_THAT(metrics::Precision().result_names(Shape{3}), ElementsAre("precision"));
}

TEST(Lists, ReportEachThresholdAlone) {
  // Two sums of two thresholds: the true positives 3 and 1, and the false positives 1 and 0.
  EXPECT_THAT(metrics::Precision({.thresholds = {0.25F, 0.5F}}).results(std::array{3.0, 1.0, 1.0, 0.0}, 4),
              ElementsAre(0.75, 1));
  EXPECT_THAT(metrics::TruePositives({.thresholds = {0.25F, 0.5F}}).results(std::array{3.0, 1.0}, 4),
              ElementsAre(3, 1));
}

TEST(Lists, RefuseThresholdsThatCannotBeToldApart) {
  EXPECT_THAT(sentence_thrown_by([] {
                metrics::Precision({.thresholds = {0.5F, 0.5F}});
              }),
              HasSubstr("precision was given the threshold 0.5 twice"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::Recall({.threshold = 0.5F, .thresholds = {0.25F}}); }),
              HasSubstr("recall was given both .threshold and .thresholds"));
  EXPECT_THAT(sentence_thrown_by([] { metrics::FalsePositives({.thresholds = {kNotANumber}}); }), HasSubstr("nan"));
}

TEST(Correlations, AreNotANumberOrZeroForConstants) {
  EXPECT_TRUE(std::isnan(sum_of_rows(metrics::PearsonCorrelation(), {2, 2, 2}, {1, 2, 3}, 1))) << "as in Keras";
  EXPECT_EQ(sum_of_rows(metrics::ConcordanceCorrelation(), {2, 2, 2}, {1, 2, 3}, 1), 0.0F);
  EXPECT_NEAR(sum_of_rows(metrics::PearsonCorrelation(), {2, 4, 6}, {1, 2, 3}, 1), 1, 1e-6);
}

TEST(Ratios, AreZeroOfNothing) {
  EXPECT_EQ(metrics::Precision().result(std::array{0.0, 0.0}, 4), 0.0);
  EXPECT_EQ(metrics::Recall().result(std::array{0.0, 0.0}, 4), 0.0);
}

// Keras 3.15: R2Score(num_regressors=2) of these five pairs, and of the first three, for which it reports the plain
// score.
TEST(R2Score, IsAdjustedForRegressorsAsInKeras) {
  const Row targets{1, 4, 3, 7, 5}, outputs{2, 4, 4, 6, 5.5F};
  const metrics::R2Score adjusted({.num_regressors = 2}), plain;
  const auto score = [&](const metrics::R2Score& metric, std::int64_t samples) {
    std::vector<double> sums(3);
    for (std::int64_t i = 0; i < samples; ++i) {
      const double t = targets[static_cast<std::size_t>(i)], y = outputs[static_cast<std::size_t>(i)];
      sums[0] += t, sums[1] += t * t, sums[2] += (t - y) * (t - y);
    }
    return metric.result(sums, static_cast<double>(samples));
  };

  EXPECT_NEAR(score(adjusted, 5), 0.675, 1e-6);
  EXPECT_EQ(score(adjusted, 3), score(plain, 3));
  EXPECT_NE(adjusted.configuration(), plain.configuration());
  EXPECT_THAT(sentence_thrown_by([] { metrics::R2Score({.num_regressors = -1}); }), HasSubstr("at least 0, not -1"));
}

// More classes than bits of a word, against the definition.
TEST(F1Score, TakesManyClasses) {
  constexpr std::size_t kClasses = 300;
  const metrics::F1Score macro({.average = metrics::FBetaAverage::macro});
  std::vector<double> sums(3 * kClasses);
  for (std::size_t i = 0; i < kClasses; ++i) sums[3 * i] = 3, sums[3 * i + 1] = 1, sums[3 * i + 2] = i % 2 == 0 ? 1 : 5;

  EXPECT_NEAR(macro.result(sums, 1), (0.75 + 0.5) / 2, 1e-6);
  EXPECT_NO_THROW(sum_of_rows(metrics::F1Score(), Row(2 * kClasses), Row(2 * kClasses), 2));
}

TEST(R2Score, TakesAnInfiniteScoreForZero) {
  const metrics::R2Score score;

  EXPECT_EQ(score.result(std::array{2.0, 2.0, 1.0}, 2), 0.0) << "targets without spread";
  EXPECT_EQ(score.result(std::array{0.0, 2.0, 1.0}, 2), 0.5);
}

}  // namespace
}  // namespace holdfast
