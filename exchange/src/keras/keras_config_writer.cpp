// Translates the graph and the configuration in a savepoint's metadata to Keras's configuration of the same model. A
// chain becomes a Sequential, any other graph a functional model. An optimizer, loss or schedule that Keras lacks is
// left out; a layer that it lacks is an error. See docs/decisions/exchange.md.

#include "keras/keras_config_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "bytes/byte_source.h"
#include "keras/keras_functional_writer.h"
#include "keras_files/keras_muon.h"
#include "keras_files/keras_optimizer_table.h"
#include "keras_layers/keras_activation.h"
#include "keras_layers/keras_layer_writer.h"
#include "keras_layers/model_graph_shapes.h"

namespace holdfast::format {
namespace {

// The savepoint's model with the layers that Keras needs for it: options of Keras cannot be an activation with numbers.
ModelGraph graph_for_keras(const Json& metadata) {
  return with_activation_layers(read_model_graph(metadata),
                                [](const std::string& text) { return keras_activation_name(text).has_value(); });
}

// Keras requires unique names of layers, and the input layer is our addition.
std::string unused_name(const ModelGraph& graph, std::string name) {
  std::set<std::string> taken;
  for (const ModelGraphLayer& layer : graph.layers) taken.insert(layer.name);
  while (taken.contains(name)) name += '_';
  return name;
}

// Layers of Keras that have their weights in parts, under the names of these here too.
std::span<const std::string_view> parts_with_weights(std::string_view kind) {
  static constexpr std::array<std::string_view, 4> kHeads = {"query_dense", "key_dense", "value_dense", "output_dense"};
  static constexpr std::array<std::string_view, 3> kCells = {"cell", "forward_layer/cell", "backward_layer/cell"};
  const std::span<const std::string_view> cells(kCells);
  if (kind == "MultiHeadAttention" || kind == "GroupQueryAttention") return kHeads;
  if (kind == "LSTM" || kind == "GRU" || kind == "SimpleRNN") return cells.first(1);
  return kind == "Bidirectional" ? cells.subspan(1) : cells.first(0);
}

// The layers of a chain. Empty if one of them is a function in Keras, which a Sequential cannot hold.
std::optional<Json> layers_of_chain(const ModelGraph& graph) {
  const std::vector<OutputShapes> shapes = shapes_of_calls(graph);
  const std::vector<std::string> names = keras_layer_names(graph);
  Json list = Json::array();
  for (const ModelGraphCall& call : graph.calls) {
    const ModelGraphLayer& layer = graph.layers[call.layer];
    // No call of a Sequential has the argument `reverse`.
    if (layer.kind == "ReversibleEmbedding") return std::nullopt;
    KerasObject object = keras_layer_object(layer, layer.name, input_shapes(graph, call, shapes));
    if (text_member(object.object, "module") != "keras.layers") return std::nullopt;
    // Nor has one other arguments, and each layer of it has one output.
    if (object.arguments.size() != 1 || !object.named_arguments.empty() || output_count(layer) > 1) return std::nullopt;
    // No chain that Holdfast writes has an empty name, or a name twice.
    if (layer.name != names[call.layer]) {
      refuse_savepoint(
          fmt::format("Keras does not accept the layer name {}; rename the layer", quoted_text(layer.name)));
    }
    list.push_back(std::move(object.object));
  }
  return list;
}

Json sequential_config(const ModelGraph& graph, const Json& layers) {
  Json shape = Json::array({nullptr});
  for (const std::int64_t extent : graph.inputs.front().shape) shape.push_back(extent);
  Json list = Json::array();
  list.push_back(keras_object(
      "keras.layers", "InputLayer",
      {{"batch_shape", std::move(shape)}, {"dtype", "float32"}, {"name", unused_name(graph, "input_layer")}}));
  // The InputLayer gives the shape, so Keras builds the weights while it loads the model.
  list.insert(list.end(), layers.begin(), layers.end());
  return keras_object("keras", "Sequential",
                      {{"name", "sequential"}, {"trainable", true}, {"dtype", "float32"}, {"layers", std::move(list)}});
}

// Turns {"kind": "...", options} into a Keras object with the same options.
Json renamed(const Json& configuration, const std::string& module, const std::string& class_name) {
  Json config = configuration;
  config.erase("kind");
  return keras_object(module, class_name, std::move(config));
}

struct ClassName {
  std::string_view holdfast;
  const char* keras;
};

std::optional<Json> object_of_kind(const Json& configuration, const std::string& module,
                                   std::span<const ClassName> classes) {
  const std::string kind = text_member(configuration, "kind");
  for (const ClassName& name : classes) {
    if (name.holdfast == kind) return renamed(configuration, module, name.keras);
  }
  return std::nullopt;
}

constexpr std::array kLosses = {
    ClassName{"binary_crossentropy", "BinaryCrossentropy"},
    ClassName{"categorical_crossentropy", "CategoricalCrossentropy"},
    ClassName{"sparse_categorical_crossentropy", "SparseCategoricalCrossentropy"},
    ClassName{"mean_squared_error", "MeanSquaredError"},
    ClassName{"mean_absolute_error", "MeanAbsoluteError"},
    ClassName{"mean_absolute_percentage_error", "MeanAbsolutePercentageError"},
    ClassName{"mean_squared_logarithmic_error", "MeanSquaredLogarithmicError"},
    ClassName{"huber", "Huber"},
    ClassName{"log_cosh", "LogCosh"},
    ClassName{"poisson", "Poisson"},
    ClassName{"kl_divergence", "KLDivergence"},
    ClassName{"cosine_similarity", "CosineSimilarity"},
    ClassName{"hinge", "Hinge"},
    ClassName{"squared_hinge", "SquaredHinge"},
    ClassName{"categorical_hinge", "CategoricalHinge"},
    ClassName{"binary_focal_crossentropy", "BinaryFocalCrossentropy"},
    ClassName{"categorical_focal_crossentropy", "CategoricalFocalCrossentropy"},
    ClassName{"categorical_generalized_cross_entropy", "CategoricalGeneralizedCrossEntropy"},
    ClassName{"ctc", "CTC"},
    ClassName{"dice", "Dice"},
    ClassName{"tversky", "Tversky"}};
constexpr std::array kMetrics = {ClassName{"accuracy", "Accuracy"},
                                 ClassName{"binary_accuracy", "BinaryAccuracy"},
                                 ClassName{"categorical_accuracy", "CategoricalAccuracy"},
                                 ClassName{"sparse_categorical_accuracy", "SparseCategoricalAccuracy"},
                                 ClassName{"top_k_categorical_accuracy", "TopKCategoricalAccuracy"},
                                 ClassName{"sparse_top_k_categorical_accuracy", "SparseTopKCategoricalAccuracy"},
                                 ClassName{"mean_absolute_error", "MeanAbsoluteError"},
                                 ClassName{"mean_squared_error", "MeanSquaredError"},
                                 ClassName{"root_mean_squared_error", "RootMeanSquaredError"},
                                 ClassName{"mean_absolute_percentage_error", "MeanAbsolutePercentageError"},
                                 ClassName{"mean_squared_logarithmic_error", "MeanSquaredLogarithmicError"},
                                 ClassName{"log_cosh_error", "LogCoshError"},
                                 ClassName{"cosine_similarity", "CosineSimilarity"},
                                 ClassName{"r2_score", "R2Score"},
                                 ClassName{"hinge", "Hinge"},
                                 ClassName{"squared_hinge", "SquaredHinge"},
                                 ClassName{"categorical_hinge", "CategoricalHinge"},
                                 ClassName{"poisson", "Poisson"},
                                 ClassName{"kl_divergence", "KLDivergence"},
                                 ClassName{"binary_crossentropy", "BinaryCrossentropy"},
                                 ClassName{"categorical_crossentropy", "CategoricalCrossentropy"},
                                 ClassName{"sparse_categorical_crossentropy", "SparseCategoricalCrossentropy"},
                                 ClassName{"true_positives", "TruePositives"},
                                 ClassName{"false_positives", "FalsePositives"},
                                 ClassName{"true_negatives", "TrueNegatives"},
                                 ClassName{"false_negatives", "FalseNegatives"},
                                 ClassName{"precision", "Precision"},
                                 ClassName{"recall", "Recall"},
                                 ClassName{"fbeta_score", "FBetaScore"},
                                 ClassName{"f1_score", "F1Score"},
                                 ClassName{"auc", "AUC"},
                                 ClassName{"precision_at_recall", "PrecisionAtRecall"},
                                 ClassName{"recall_at_precision", "RecallAtPrecision"},
                                 ClassName{"sensitivity_at_specificity", "SensitivityAtSpecificity"},
                                 ClassName{"specificity_at_sensitivity", "SpecificityAtSensitivity"},
                                 ClassName{"io_u", "IoU"},
                                 ClassName{"mean_io_u", "MeanIoU"},
                                 ClassName{"one_hot_io_u", "OneHotIoU"},
                                 ClassName{"one_hot_mean_io_u", "OneHotMeanIoU"},
                                 ClassName{"binary_io_u", "BinaryIoU"},
                                 ClassName{"pearson_correlation", "PearsonCorrelation"},
                                 ClassName{"concordance_correlation", "ConcordanceCorrelation"}};

constexpr std::array kSchedules = {ClassName{"cosine_decay", "CosineDecay"},
                                   ClassName{"cosine_decay_restarts", "CosineDecayRestarts"},
                                   ClassName{"exponential_decay", "ExponentialDecay"},
                                   ClassName{"inverse_time_decay", "InverseTimeDecay"},
                                   ClassName{"piecewise_constant_decay", "PiecewiseConstantDecay"},
                                   ClassName{"polynomial_decay", "PolynomialDecay"}};
// Options that have other names in Keras.
constexpr std::array kClippings = {ClassName{"clip_value", "clipvalue"}, ClassName{"clip_norm", "clipnorm"},
                                   ClassName{"global_clip_norm", "global_clipnorm"}};

// Holdfast's texts write 1.0 as 1, which some optimizers of Keras refuse as an integer. Counts stay integers.
void write_reals_as_reals(Json& config) {
  for (const auto& [option, number] : config.items()) {
    const bool is_count = option.ends_with("_steps") || option.ends_with("_frequency");
    if (number.is_number_integer() && !is_count) number = number.get<double>();
  }
}

// Empty if Keras lacks the optimizer or its schedule.
std::optional<Json> optimizer_object(const Json& configuration) {
  const KerasOptimizerKind* kind = keras_optimizer_of_kind(text_member(configuration, "kind"));
  if (kind == nullptr) return std::nullopt;
  Json optimizer = renamed(configuration, "keras.optimizers", std::string(kind->keras));
  Json& config = optimizer["config"];
  // Keras has no rates of layers, and keeps what does not decay out of its configuration. Without them it would train
  // otherwise.
  if (config.contains("learning_rate_factors") || config.contains("exclude_from_weight_decay")) return std::nullopt;
  if (config.contains("adam_arrays")) {
    Json expressions = Json::array();
    for (const Json& pattern : config["adam_arrays"]) {
      const auto expression = pattern.is_string() ? keras_expression(pattern.get<std::string>()) : std::nullopt;
      // Another set of arrays would be trained by Adam.
      if (!expression) return std::nullopt;
      expressions.push_back(*expression);
    }
    config["exclude_layers"] = std::move(expressions);
    config.erase("adam_arrays");
  }
  const Json& rate = member(configuration, "learning_rate");
  if (rate.is_object()) {
    const auto schedule = object_of_kind(rate, "keras.optimizers.schedules", kSchedules);
    // A constant rate in its place would train otherwise without a word.
    if (!schedule) return std::nullopt;
    config["learning_rate"] = *schedule;
  }
  for (const ClassName& name : kClippings) {
    if (!config.contains(name.holdfast)) continue;
    config[name.keras] = config[name.holdfast];
    config.erase(config.find(name.holdfast));
  }
  // As Keras itself writes that nothing decays.
  if (!kind->requires_decay && config.contains("weight_decay") && number_member(config, "weight_decay") == 0) {
    config["weight_decay"] = nullptr;
  }
  write_reals_as_reals(config);
  return optimizer;
}

// Keras counts the samples as axis 0.
void count_samples_as_axis(Json& axis) {
  // A shape has few axes; a stranger's file may have any number.
  constexpr std::int64_t kMost = 1000;
  if (axis.is_number_integer() && axis >= 0 && axis < kMost) axis = axis.get<std::int64_t>() + 1;
}

// A loss or metric of values.
std::optional<Json> object_of_axis(const Json& configuration, const std::string& module,
                                   std::span<const ClassName> classes) {
  std::optional<Json> object = object_of_kind(configuration, module, classes);
  if (!object) return std::nullopt;
  Json& config = (*object)["config"];
  const auto axis = config.find("axis");
  if (axis == config.end()) return object;
  if (!axis->is_array()) {
    count_samples_as_axis(*axis);
    return object;
  }
  // All axes of a sample are another loss in Keras: of the whole batch.
  if (axis->empty()) return std::nullopt;
  for (Json& one : *axis) count_samples_as_axis(one);
  return object;
}

// Null where Keras lacks it.
std::optional<Json> loss_object(const Json& configuration) {
  std::optional<Json> object = object_of_axis(configuration, "keras.losses", kLosses);
  // Keras sees these sizes in the arrays, and computes all positions at once.
  for (const char* size : {"classes", "most_labels", "positions_at_once"}) {
    if (object) (*object)["config"].erase(size);
  }
  return object;
}

// The losses of all outputs. A savepoint of one loss with the factor 1 has it alone.
std::vector<Json> losses_of(const Json& configuration) {
  const Json& list = member(configuration, "losses");
  if (list.is_array()) return std::vector<Json>(list.begin(), list.end());
  Json alone = {{"loss", member(configuration, "loss")}, {"weight", 1}};
  return std::vector<Json>(1, std::move(alone));
}

// A metric that Keras lacks is left out: it changes nothing of what the model computes. There is a list for each
// output, as Keras writes it.
std::vector<Json> metrics_of(const Json& configuration, std::size_t outputs) {
  std::vector<Json> metrics(outputs, Json::array());
  const Json& list = member(configuration, "metrics");
  for (const Json& metric : list.is_array() ? list : Json::array()) {
    std::size_t output = 0;
    const Json* own = &metric;
    // Around a metric stand its output, the number of its sums, and what it ignores.
    while (own->is_object() && own->contains("metric")) {
      const std::int64_t place = integer_value(member(*own, "output")).value_or(0);
      output = std::max(output, place < 0 ? outputs : static_cast<std::size_t>(place));
      own = &member(*own, "metric");
    }
    auto object = object_of_axis(*own, "keras.metrics", kMetrics);
    if (object && output < outputs) metrics[output].push_back(std::move(*object));
  }
  return metrics;
}

// One for a single output, else a list.
// What belongs to the outputs: by name if the model gives them names, as Keras returns them then.
Json of_outputs(std::vector<Json> parts, const std::vector<std::string>& names) {
  if (names.size() == parts.size()) {
    Json named = Json::object();
    for (std::size_t output = 0; output < names.size(); ++output) named[names[output]] = std::move(parts[output]);
    return named;
  }
  return parts.size() == 1 ? std::move(parts[0]) : Json(std::move(parts));
}

// Keras takes a list also of one.
Json weights_of_losses(std::vector<Json> weights, const std::vector<std::string>& names) {
  return names.size() == weights.size() ? of_outputs(std::move(weights), names) : Json(std::move(weights));
}

// What Keras needs to train, or the part of it that Keras lacks.
struct KerasCompilation {
  Json config;
  std::string missing;
};

KerasCompilation compilation(const Json& configuration, const std::vector<std::string>& output_names) {
  const Json& own = member(configuration, "optimizer");
  const auto optimizer = optimizer_object(own);
  if (!optimizer) {
    return {.config = {}, .missing = fmt::format("the optimizer {} as it is", quoted_text(text_member(own, "kind")))};
  }
  std::vector<Json> losses;
  std::vector<Json> weights;
  bool is_weighted = false;
  for (const Json& entry : losses_of(configuration)) {
    auto loss = loss_object(member(entry, "loss"));
    if (!loss) {
      const std::string kind = text_member(member(entry, "loss"), "kind");
      return {.config = {}, .missing = fmt::format("the loss {} as it is", quoted_text(kind))};
    }
    losses.push_back(std::move(*loss));
    weights.push_back(number_member(entry, "weight"));
    is_weighted = is_weighted || weights.back() != 1;
  }
  std::vector<Json> metrics = metrics_of(configuration, losses.size());
  return {.config = {{"optimizer", *optimizer},
                     {"loss", of_outputs(std::move(losses), output_names)},
                     {"loss_weights", is_weighted ? weights_of_losses(std::move(weights), output_names) : Json()},
                     {"metrics", of_outputs(std::move(metrics), output_names)},
                     {"weighted_metrics", nullptr},
                     {"run_eagerly", false},
                     {"steps_per_execution", 1},
                     {"jit_compile", false}},
          .missing = ""};
}

}  // namespace

bool is_savepoint(const Json& metadata) {
  return text_member(metadata, "kind") == "savepoint";
}

Json keras_config_of_savepoint(const Json& metadata) {
  const ModelGraph graph = graph_for_keras(metadata);
  const std::optional<Json> chain = graph.is_chain() ? layers_of_chain(graph) : std::nullopt;
  Json config = chain ? sequential_config(graph, *chain) : keras_functional_config(graph);
  KerasCompilation compiled = compilation(member(metadata, "configuration"), graph.output_names);
  // Without it the model loads uncompiled, and its user chooses optimizer and loss.
  if (compiled.missing.empty()) config["compile_config"] = std::move(compiled.config);
  return config;
}

std::string training_that_keras_lacks(const Json& metadata) {
  return compilation(member(metadata, "configuration"), {}).missing;
}

std::map<std::string, std::string> savepoint_layer_names(const Json& metadata) {
  const ModelGraph graph = graph_for_keras(metadata);
  const std::vector<std::string> keras = keras_layer_names(graph);
  std::map<std::string, std::string> names;
  for (std::size_t layer = 0; layer < keras.size(); ++layer) {
    const std::string& name = graph.layers[layer].name;
    names.emplace(keras[layer], name);
    for (const std::string_view part : parts_with_weights(graph.layers[layer].kind)) {
      names.emplace(fmt::format("{}/{}", keras[layer], part), fmt::format("{}/{}", name, part));
    }
  }
  return names;
}

std::array<std::uint64_t, 3> image_before(const Json& metadata, const std::string& name) {
  const ModelGraph graph = graph_for_keras(metadata);
  const std::vector<OutputShapes> shapes = shapes_of_calls(graph);
  for (const ModelGraphCall& call : graph.calls) {
    if (graph.layers[call.layer].name != name) continue;
    const std::vector<MaybeShape> inputs = input_shapes(graph, call, shapes);
    const bool is_image = inputs.size() == 1 && inputs.front() && inputs.front()->size() == 3;
    if (!is_image) return {};
    const SampleShape& image = *inputs.front();
    return {static_cast<std::uint64_t>(image[0]), static_cast<std::uint64_t>(image[1]),
            static_cast<std::uint64_t>(image[2])};
  }
  return {};
}

}  // namespace holdfast::format
