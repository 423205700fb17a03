#include "holdfast/nn/sequential.h"

#include "holdfast/base/error.h"
#include "nn/model/describe.h"

namespace holdfast {

Sequential::Sequential(const Input& input, const std::vector<std::shared_ptr<const Layer>>& layers)
    : Model(complete(describe_chain(input, layers))) {}

// A Model that is read from a file may be a chain. Then it can be used as a Sequential, with the same weights.
Sequential::Sequential(const Model& model) : Model(model) {
  if (model.is_chain()) return;
  throw Error(ErrorCode::invalid_argument,
              "the model is not a Sequential: its layers do not follow one another; use it as a Model");
}

}  // namespace holdfast
