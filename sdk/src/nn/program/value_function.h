#pragma once

// What losses and metrics of values have in common.

#include <span>
#include <string>

#include "holdfast/nn/value_loss.h"
#include "holdfast/nn/value_metric.h"
#include "nn/program/value_program.h"

namespace holdfast {

// `role` is "loss" or "metric". Throws Error{invalid_argument} as the constructor of ValueLoss does.
void check_value_function(const std::string& role, const std::string& name, const ValueOptionsByName& options);
std::string value_function_configuration(const std::string& kind, const std::string& name,
                                         const ValueOptionsByName& options);

// A JSON object of a kind and members that JsonObject::members() gave, which may be none.
std::string built_in_configuration(const std::string& kind, const std::string& options, const std::string& last = {});

// For the beginning of sentences: loss "huber".
std::string described_name(const std::string& role, const std::string& name);

// Rows as arrays of one axis. Throws Error{invalid_argument} for spans that do not divide into rows.
EvaluatedShapes shapes_of_rows(const std::string& name, std::span<const float> outputs, std::span<const float> targets,
                               std::int64_t samples);
// The graph of ValueMetric::sums(). The metric may go away after it.
SumsGraph graph_of_metric_sums(const ValueMetric& metric, const EvaluatedShapes& shapes);
void run_on_host(SumsGraph graph, std::int64_t samples, float scale, const ValueProgram::Arrays& arrays);

}  // namespace holdfast
