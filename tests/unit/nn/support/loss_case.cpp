#include "unit/nn/support/loss_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>

#include "holdfast/holdfast.h"
#include "nn/program/value_function.h"
#include "support/folders.h"
#include "unit/nn/support/placed_array.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;
using Floats = std::vector<float>;

template <class Option>
void take(const Json& options, const char* name, Option& option) {
  if (options.contains(name)) option = options[name].get<Option>();
}

CrossentropyOptions crossentropy_options(const Json& options) {
  CrossentropyOptions result;
  take(options, "from_logits", result.from_logits);
  take(options, "label_smoothing", result.label_smoothing);
  return result;
}

template <class Options>
Options focal_options(const Json& options) {
  Options result;
  take(options, "alpha", result.alpha);
  take(options, "gamma", result.gamma);
  take(options, "from_logits", result.from_logits);
  take(options, "label_smoothing", result.label_smoothing);
  if constexpr (requires { result.apply_class_balancing; }) {
    take(options, "apply_class_balancing", result.apply_class_balancing);
  }
  return result;
}

losses::TverskyOptions tversky_options(const Json& options) {
  losses::TverskyOptions result;
  take(options, "alpha", result.alpha);
  take(options, "beta", result.beta);
  take(options, "axis", result.axis);
  return result;
}

template <class Kind>
std::unique_ptr<Loss> plain(const Json&) {
  return std::make_unique<Kind>();
}

using LossMaker = std::function<std::unique_ptr<Loss>(const Json&)>;

const std::map<std::string, LossMaker>& losses_of_cases() {
  static const std::map<std::string, LossMaker> makers = {
      {"MeanAbsoluteError", plain<losses::MeanAbsoluteError>},
      {"MeanAbsolutePercentageError", plain<losses::MeanAbsolutePercentageError>},
      {"MeanSquaredLogarithmicError", plain<losses::MeanSquaredLogarithmicError>},
      {"Huber",
       [](const Json& o) {
         return std::make_unique<losses::Huber>(losses::HuberOptions{.delta = o.at("delta").get<float>()});
       }},
      {"LogCosh", plain<losses::LogCosh>},
      {"Poisson", plain<losses::Poisson>},
      {"KLDivergence", plain<losses::KLDivergence>},
      {"CosineSimilarity",
       [](const Json& o) {
         return std::make_unique<losses::CosineSimilarity>(losses::CosineSimilarityOptions{.axis = o.at("axis")});
       }},
      {"Hinge", plain<losses::Hinge>},
      {"SquaredHinge", plain<losses::SquaredHinge>},
      {"CategoricalHinge", plain<losses::CategoricalHinge>},
      {"BinaryFocalCrossentropy",
       [](const Json& o) {
         return std::make_unique<losses::BinaryFocalCrossentropy>(
             focal_options<losses::BinaryFocalCrossentropyOptions>(o));
       }},
      {"CategoricalFocalCrossentropy",
       [](const Json& o) {
         return std::make_unique<losses::CategoricalFocalCrossentropy>(
             focal_options<losses::CategoricalFocalCrossentropyOptions>(o));
       }},
      {"BinaryCrossentropy",
       [](const Json& o) { return std::make_unique<BinaryCrossentropy>(crossentropy_options(o)); }},
      {"CategoricalCrossentropy",
       [](const Json& o) { return std::make_unique<CategoricalCrossentropy>(crossentropy_options(o)); }},
      {"CategoricalGeneralizedCrossEntropy",
       [](const Json& o) {
         return std::make_unique<losses::CategoricalGeneralizedCrossEntropy>(
             losses::GeneralizedCrossentropyOptions{.q = o.at("q")});
       }},
      {"Dice", [](const Json& o) { return std::make_unique<losses::Dice>(losses::DiceOptions{.axis = o.at("axis")}); }},
      {"Tversky", [](const Json& o) { return std::make_unique<losses::Tversky>(tversky_options(o)); }},
      {"CTC",
       [](const Json& o) {
         return std::make_unique<losses::CTC>(
             losses::CTCOptions{.classes = o.at("classes"), .most_labels = o.at("most_labels")});
       }},
  };
  return makers;
}

template <class Kind>
std::unique_ptr<Metric> plain_metric(const Json&) {
  return std::make_unique<Kind>();
}

template <class Kind>
std::unique_ptr<Metric> crossentropy_metric(const Json& options) {
  if constexpr (std::is_constructible_v<Kind, metrics::CrossentropyMetricOptions>) {
    return std::make_unique<Kind>(metrics::CrossentropyMetricOptions{.from_logits = options.at("from_logits"),
                                                                     .label_smoothing = options.at("label_smoothing")});
  } else {
    return std::make_unique<Kind>(metrics::SparseCrossentropyMetricOptions{.from_logits = options.at("from_logits")});
  }
}

template <class Kind>
std::unique_ptr<Metric> top_k(const Json& options) {
  return std::make_unique<Kind>(metrics::TopKOptions{.k = options.at("k")});
}

template <class Kind, class Options>
std::unique_ptr<Metric> counted(const Json& options) {
  Options result;
  if (options.contains("thresholds") && options["thresholds"].is_array()) {
    take(options, "thresholds", result.thresholds);
  } else if (options.contains("thresholds")) {
    result.threshold = options["thresholds"].get<float>();
  }
  if constexpr (requires { result.class_id; }) {
    if (options.contains("class_id")) result.class_id = options["class_id"].get<std::int64_t>();
    if (options.contains("top_k")) result.top_k = options["top_k"].get<std::int64_t>();
  }
  return std::make_unique<Kind>(result);
}

template <class Kind, class Options>
std::unique_ptr<Metric> fbeta(const Json& options) {
  Options result;
  const Json& average = options.at("average");
  result.average = average.is_null()    ? metrics::FBetaAverage::none
                   : average == "micro" ? metrics::FBetaAverage::micro
                   : average == "macro" ? metrics::FBetaAverage::macro
                                        : metrics::FBetaAverage::weighted;
  if (!options.at("threshold").is_null()) result.threshold = options["threshold"].get<float>();
  if constexpr (requires { result.beta; }) take(options, "beta", result.beta);
  return std::make_unique<Kind>(result);
}

std::unique_ptr<Metric> r2_score(const Json& options) {
  const Json& aggregation = options.at("class_aggregation");
  metrics::R2ScoreOptions result;
  result.class_aggregation = aggregation.is_null()              ? metrics::R2Aggregation::none
                             : aggregation == "uniform_average" ? metrics::R2Aggregation::uniform_average
                                                                : metrics::R2Aggregation::variance_weighted_average;
  return std::make_unique<metrics::R2Score>(result);
}

std::unique_ptr<Metric> cosine_metric(const Json& options) {
  return std::make_unique<metrics::CosineSimilarity>(metrics::CosineSimilarityOptions{.axis = options.at("axis")});
}

template <class Kind>
std::unique_ptr<Metric> correlation(const Json& options) {
  return std::make_unique<Kind>(metrics::CorrelationOptions{.axis = options.at("axis")});
}

std::unique_ptr<Metric> auc(const Json& options) {
  const std::string curve = options.at("curve"), method = options.at("summation_method");
  metrics::AUCOptions result;
  result.curve = curve == "ROC"  ? metrics::AUCCurve::roc
                 : curve == "PR" ? metrics::AUCCurve::pr
                                 : metrics::AUCCurve::pr_gain;
  result.summation_method = method == "interpolation" ? metrics::AUCSummation::interpolation
                            : method == "minoring"    ? metrics::AUCSummation::minoring
                                                      : metrics::AUCSummation::majoring;
  take(options, "num_thresholds", result.num_thresholds);
  take(options, "thresholds", result.thresholds);
  take(options, "multi_label", result.multi_label);
  take(options, "label_weights", result.label_weights);
  take(options, "from_logits", result.from_logits);
  return std::make_unique<metrics::AUC>(result);
}

template <class Kind>
std::unique_ptr<Metric> operating_point(const Json& options, const char* option) {
  metrics::OperatingPointOptions result;
  take(options, "num_thresholds", result.num_thresholds);
  if (options.contains("class_id")) result.class_id = options["class_id"].get<std::int64_t>();
  return std::make_unique<Kind>(options.at(option).get<float>(), result);
}

metrics::IoUOptions iou_options(const Json& options) {
  metrics::IoUOptions result;
  if (!options.at("ignore_class").is_null()) result.ignore_class = options["ignore_class"].get<std::int64_t>();
  take(options, "sparse_y_true", result.sparse_targets);
  take(options, "sparse_y_pred", result.sparse_outputs);
  return result;
}

metrics::OneHotIoUOptions one_hot_iou_options(const Json& options) {
  const metrics::IoUOptions all = iou_options(options);
  return {.ignore_class = all.ignore_class, .sparse_outputs = all.sparse_outputs};
}

using Ids = std::vector<std::int64_t>;

using MetricMaker = std::function<std::unique_ptr<Metric>(const Json&)>;

const std::map<std::string, MetricMaker>& metrics_of_cases() {
  static const std::map<std::string, MetricMaker> makers = {
      {"MeanSquaredError", plain_metric<metrics::MeanSquaredError>},
      {"RootMeanSquaredError", plain_metric<metrics::RootMeanSquaredError>},
      {"LogCoshError", plain_metric<metrics::LogCoshError>},
      {"MeanAbsolutePercentageError", plain_metric<metrics::MeanAbsolutePercentageError>},
      {"MeanSquaredLogarithmicError", plain_metric<metrics::MeanSquaredLogarithmicError>},
      {"CosineSimilarity", cosine_metric},
      {"R2Score", r2_score},
      {"Hinge", plain_metric<metrics::Hinge>},
      {"SquaredHinge", plain_metric<metrics::SquaredHinge>},
      {"CategoricalHinge", plain_metric<metrics::CategoricalHinge>},
      {"Poisson", plain_metric<metrics::Poisson>},
      {"KLDivergence", plain_metric<metrics::KLDivergence>},
      {"BinaryCrossentropy", crossentropy_metric<metrics::BinaryCrossentropy>},
      {"CategoricalCrossentropy", crossentropy_metric<metrics::CategoricalCrossentropy>},
      {"SparseCategoricalCrossentropy", crossentropy_metric<metrics::SparseCategoricalCrossentropy>},
      {"Perplexity", crossentropy_metric<metrics::Perplexity>},
      {"Accuracy", plain_metric<metrics::Accuracy>},
      {"TopKCategoricalAccuracy", top_k<metrics::TopKCategoricalAccuracy>},
      {"SparseTopKCategoricalAccuracy", top_k<metrics::SparseTopKCategoricalAccuracy>},
      {"TruePositives", counted<metrics::TruePositives, metrics::CountOptions>},
      {"FalsePositives", counted<metrics::FalsePositives, metrics::CountOptions>},
      {"TrueNegatives", counted<metrics::TrueNegatives, metrics::CountOptions>},
      {"FalseNegatives", counted<metrics::FalseNegatives, metrics::CountOptions>},
      {"Precision", counted<metrics::Precision, metrics::PrecisionOptions>},
      {"Recall", counted<metrics::Recall, metrics::PrecisionOptions>},
      {"FBetaScore", fbeta<metrics::FBetaScore, metrics::FBetaScoreOptions>},
      {"F1Score", fbeta<metrics::F1Score, metrics::F1ScoreOptions>},
      {"PearsonCorrelation", correlation<metrics::PearsonCorrelation>},
      {"ConcordanceCorrelation", correlation<metrics::ConcordanceCorrelation>},
      {"AUC", auc},
      {"PrecisionAtRecall", [](const Json& o) { return operating_point<metrics::PrecisionAtRecall>(o, "recall"); }},
      {"RecallAtPrecision", [](const Json& o) { return operating_point<metrics::RecallAtPrecision>(o, "precision"); }},
      {"SensitivityAtSpecificity",
       [](const Json& o) { return operating_point<metrics::SensitivityAtSpecificity>(o, "specificity"); }},
      {"SpecificityAtSensitivity",
       [](const Json& o) { return operating_point<metrics::SpecificityAtSensitivity>(o, "sensitivity"); }},
      {"IoU",
       [](const Json& o) {
         return std::make_unique<metrics::IoU>(o.at("num_classes"), o.at("target_class_ids").get<Ids>(),
                                               iou_options(o));
       }},
      {"MeanIoU",
       [](const Json& o) { return std::make_unique<metrics::MeanIoU>(o.at("num_classes"), iou_options(o)); }},
      {"OneHotIoU",
       [](const Json& o) {
         return std::make_unique<metrics::OneHotIoU>(o.at("num_classes"), o.at("target_class_ids").get<Ids>(),
                                                     one_hot_iou_options(o));
       }},
      {"OneHotMeanIoU",
       [](const Json& o) {
         return std::make_unique<metrics::OneHotMeanIoU>(o.at("num_classes"), one_hot_iou_options(o));
       }},
      {"BinaryIoU",
       [](const Json& o) {
         return std::make_unique<metrics::BinaryIoU>(metrics::BinaryIoUOptions{
             .target_class_ids = o.at("target_class_ids").get<Ids>(), .threshold = o.at("threshold")});
       }},
  };
  return makers;
}

// The arrays of a case, without the axis of the samples in shapes.
struct CaseArrays {
  explicit CaseArrays(const Json& one)
      : samples(one.at("outputs").at("shape").at(0)),
        outputs(one.at("outputs").at("values").get<Floats>()),
        targets(one.at("targets").at("values").get<Floats>()),
        shapes{.outputs = sample_shape(one.at("outputs")), .targets = sample_shape(one.at("targets"))} {
    if (!one.contains("weights")) return;
    weights = one.at("weights").at("values").get<Floats>();
    shapes.weights = sample_shape(one.at("weights"));
  }

  static Shape sample_shape(const Json& array) {
    auto extents = array.at("shape").get<std::vector<std::int64_t>>();
    extents.erase(extents.begin());
    return Shape(extents);
  }

  std::int64_t samples;
  Floats outputs, targets, weights;
  EvaluatedShapes shapes;
};

// Inputs are exact in f32. A function takes some 16 roundings of half an ulp, sums of the cases have at most 75 terms,
// and the magnitude says how far a relative change of all inputs moves a result. Gradients of cases are right to 1e-8.
void expect_near_case(std::span<const float> found, const Json& expected, double roundings, const std::string& what) {
  const auto wanted = expected.at("values").get<std::vector<double>>();
  const double tolerance = roundings * expected.at("magnitude").get<double>() * (10 + 16) * 0x1p-24 + 2e-8;
  ASSERT_EQ(found.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], tolerance) << what << ", " << i;
}

// The configuration has a kind, which is the class in another spelling, and the options of the case.
void expect_options(const std::string& configuration, const Json& options) {
  const Json described = Json::parse(configuration);
  EXPECT_TRUE(described.contains("kind")) << configuration;
  for (const auto& [name, value] : options.items()) {
    ASSERT_TRUE(described.contains(name)) << configuration;
    EXPECT_EQ(described[name], value) << configuration;
  }
}

// What OutputEvaluation divides by.
double weight_of(const CaseArrays& arrays) {
  if (arrays.weights.empty()) return static_cast<double>(arrays.samples);
  double weight = 0;
  for (const float one : arrays.weights) weight += one;
  return weight;
}

struct ComputedCase {
  Floats sums;
  Floats gradient;
};

ComputedCase run_case(SumsGraph graph, const CaseArrays& arrays, float scale, bool has_gradient,
                      compute::Backend& backend) {
  MemorySpace& memory = backend.memory();
  const PlacedArray outputs(memory, arrays.outputs), targets(memory, arrays.targets), weights(memory, arrays.weights);
  const PlacedArray sums(memory, graph.element_count());
  // Not zero, so that what is not written shows.
  const PlacedArray gradient(memory, Floats(arrays.outputs.size(), 99));
  ValueProgram program(std::move(graph), backend);
  std::vector<std::uint64_t> key;
  program.prepare(arrays.samples, scale, key);
  program.run({.outputs = outputs.data(),
               .targets = targets.data(),
               .weights = weights.data(),
               .gradient = has_gradient ? gradient.data() : nullptr,
               .sums = sums.data()});
  return {.sums = sums.values(), .gradient = gradient.values()};
}

// A loss that functions of values cannot say, sample by sample on the host.
ComputedCase run_rows(const Loss& loss, const CaseArrays& arrays, float scale) {
  ComputedCase computed = {.sums = {0}, .gradient = Floats(arrays.outputs.size(), 99)};
  const auto count = static_cast<std::size_t>(arrays.samples);
  const auto row = [&](auto array, std::size_t sample) {
    const std::size_t width = array.size() / count;
    return array.subspan(sample * width, width);
  };
  for (std::size_t sample = 0; sample < count; ++sample) {
    const float weight = arrays.weights.empty() ? 1 : arrays.weights[sample];
    computed.sums[0] += weight * loss.evaluate(row(std::span<const float>(arrays.outputs), sample),
                                               row(std::span<const float>(arrays.targets), sample), 1, scale * weight,
                                               row(std::span<float>(computed.gradient), sample));
  }
  return computed;
}

}  // namespace

Json loss_cases_in(const std::string& name) {
  const char* const chosen = std::getenv("HOLDFAST_REFERENCE_CASES");
  const std::string folder = chosen != nullptr ? chosen : source_folder() + "/tests/unit/nn/losses/reference";
  std::ifstream file(folder + "/" + name);
  return Json::parse(file);
}

void expect_loss_of_case(const Json& one, compute::Backend& backend, double roundings) {
  constexpr float kGradientScale = 0.5F;
  const std::unique_ptr<Loss> loss = losses_of_cases().at(one.at("class"))(one.at("options"));
  const std::unique_ptr<Loss> clone = loss->clone();
  const CaseArrays arrays(one);
  EXPECT_EQ(loss->target_shape(arrays.shapes.outputs), arrays.shapes.targets);
  expect_options(loss->configuration(), one.at("options"));
  EXPECT_EQ(clone->configuration(), loss->configuration());
  const DescribeLoss describe = [&](const Value& o, const Value& t) { return clone->as_values()->losses(o, t); };

  const ComputedCase found = clone->as_values() == nullptr ? run_rows(*clone, arrays, kGradientScale)
                                                           : run_case(graph_of_loss("loss", describe, arrays.shapes),
                                                                      arrays, kGradientScale, true, backend);

  expect_near_case(found.sums, one.at("value"), roundings, "value");
  expect_near_case(found.gradient, one.at("gradient"), roundings, "gradient");
}

void expect_metric_of_case(const Json& one, compute::Backend& backend, double roundings) {
  const std::unique_ptr<Metric> metric = metrics_of_cases().at(one.at("class"))(one.at("options"));
  const std::unique_ptr<Metric> clone = metric->clone();
  const CaseArrays arrays(one);
  expect_options(metric->configuration(), one.at("options"));
  EXPECT_EQ(clone->configuration(), metric->configuration());
  ASSERT_NE(clone->as_values(), nullptr);

  const ComputedCase sums =
      run_case(graph_of_metric_sums(*clone->as_values(), arrays.shapes), arrays, 1, false, backend);
  const std::vector<double> exact(sums.sums.begin(), sums.sums.end());
  const std::vector<double> results = clone->results(exact, weight_of(arrays));
  const Floats found(results.begin(), results.end());

  EXPECT_EQ(found.size(), clone->result_names(arrays.shapes.outputs).size());
  expect_near_case(found, one.at("value"), roundings, "value");
}

}  // namespace holdfast
