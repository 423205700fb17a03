#pragma once

// Vectors that are turned by their position: RotaryEmbedding, and the queries and keys of an attention.

#include <cstdint>
#include <string>

#include "holdfast/nn/layer_builder.h"
#include "holdfast/nn/position_embedding.h"
#include "nn/graph/value_node.h"

namespace holdfast {

// Throws Error{invalid_argument} that names the layer, for a wavelength or a factor out of range.
void check_rotation(std::string_view kind, const RotaryEmbeddingOptions& options);

// Buffers with the cosine and the sine of each angle, [steps, width / 2].
struct RotationTables {
  Value cosine;
  Value sine;
};

// `prefix` stands before the names of the buffers. Throws Error{invalid_argument} for an odd width, and for tables that
// no memory holds.
RotationTables rotation_tables(LayerBuilder& builder, const std::string& prefix, std::int64_t steps, std::int64_t width,
                               const RotaryEmbeddingOptions& options);

// x [steps, ..., width], of as many steps as the tables have, or fewer.
Value rotated(const Value& x, const RotationTables& tables);

}  // namespace holdfast
