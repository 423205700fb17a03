#pragma once

// The tables of Embedding layers as the Projector tab of TensorBoard reads them: rows of numbers as text, labels of the
// rows, and projector_config.pbtxt, which names both (tensorboard/plugins/projector/projector_config.proto).

#include <map>
#include <string>
#include <vector>

#include "holdfast/base/file_system.h"
#include "holdfast/train/callback.h"

namespace holdfast {

// A label for each row of a table, by the path of its layer.
using EmbeddingLabels = std::map<std::string, std::vector<std::string>>;

// Throws Error{invalid_argument} for labels of no table, or of another number than it has rows. Without labels it does
// nothing.
void check_embedding_labels(const std::vector<WeightArray>& weights, const EmbeddingLabels& labels);

// Writes the tables among `weights`, each file whole. Nothing where there are none.
void write_embedding_tables(FileSystem& files, const std::string& folder, const std::vector<WeightArray>& weights,
                            const EmbeddingLabels& labels);

}  // namespace holdfast
