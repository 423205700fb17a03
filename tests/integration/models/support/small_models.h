#pragma once

// Models of the kinds that people train, small enough that 50 steps take less than a second.

#include <map>
#include <memory>
#include <string>

#include "holdfast/holdfast.h"

namespace holdfast {

struct SmallModel {
  Model model;  // 10 scores for an image [28, 28, 1]
  std::shared_ptr<const Optimizer> optimizer;
};

// By name. "elements" has no products of matrices and no convolutions.
std::map<std::string, SmallModel> small_models();

// The digest of the weights after 50 steps of 16 drawn digits, in two shards of one replica.
std::string digest_after_fifty_steps(const SmallModel& small);

}  // namespace holdfast
