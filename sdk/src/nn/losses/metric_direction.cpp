// One table for kinds and names, so that a metric and its name in a log cannot say different things. A kind that is
// missing here has no direction, which a callback then asks its user for: a wrong guess would keep the worst epoch.

#include "nn/losses/metric_direction.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace holdfast {
namespace {

// Names of kinds and, at the end, short forms that only names have.
constexpr auto kRising = std::to_array<std::string_view>({"accuracy",
                                                          "binary_accuracy",
                                                          "categorical_accuracy",
                                                          "sparse_categorical_accuracy",
                                                          "top_k_categorical_accuracy",
                                                          "sparse_top_k_categorical_accuracy",
                                                          "precision",
                                                          "recall",
                                                          "precision_at_recall",
                                                          "recall_at_precision",
                                                          "sensitivity_at_specificity",
                                                          "specificity_at_sensitivity",
                                                          "auc",
                                                          "fbeta_score",
                                                          "f1_score",
                                                          "io_u",
                                                          "mean_io_u",
                                                          "one_hot_io_u",
                                                          "one_hot_mean_io_u",
                                                          "binary_io_u",
                                                          "cosine_similarity",
                                                          "pearson_correlation",
                                                          "concordance_correlation",
                                                          "r2_score",
                                                          "acc",
                                                          "iou",
                                                          "f1",
                                                          "r2"});
constexpr auto kFalling = std::to_array<std::string_view>({"mean_squared_error",
                                                           "mean_absolute_error",
                                                           "root_mean_squared_error",
                                                           "mean_absolute_percentage_error",
                                                           "mean_squared_logarithmic_error",
                                                           "log_cosh_error",
                                                           "logcosh",
                                                           "hinge",
                                                           "squared_hinge",
                                                           "categorical_hinge",
                                                           "poisson",
                                                           "kl_divergence",
                                                           "binary_crossentropy",
                                                           "categorical_crossentropy",
                                                           "sparse_categorical_crossentropy",
                                                           "perplexity",
                                                           "loss",
                                                           "error",
                                                           "mse",
                                                           "mae",
                                                           "rmse"});

// Counts, such as false_positives, are in neither list: their size follows the number of samples.
std::optional<Best> direction_where(const auto& is_it) {
  if (std::ranges::any_of(kRising, is_it)) return Best::highest;
  if (std::ranges::any_of(kFalling, is_it)) return Best::lowest;
  return std::nullopt;
}

}  // namespace

std::optional<Best> direction_of_configuration(const std::string& configuration) {
  // A metric of the application may write anything. A Trainer refuses text that is not JSON, with a sentence of its
  // own.
  const nlohmann::json object = nlohmann::json::parse(configuration, nullptr, false);
  if (!object.is_object() || !object.contains("kind") || !object["kind"].is_string()) return std::nullopt;
  const std::string kind = object["kind"].get<std::string>();
  return direction_where([&](std::string_view known) { return kind == known; });
}

// A name ends with its kind where the metric belongs to one of several outputs: "age_mean_absolute_error".
std::optional<Best> direction_of_name(std::string name) {
  // The same metric of validation data has the same direction.
  if (name.starts_with("val_")) name.erase(0, 4);
  return direction_where([&](std::string_view known) {
    return name == known || (name.ends_with(known) && name[name.size() - known.size() - 1] == '_');
  });
}

}  // namespace holdfast
