// Builds a network with layers of 8000, 4000, 2000, 500, 300 and 1 units, and prints its summary.

#include <cstdio>

#include "holdfast/holdfast.h"

int main() {
  using namespace holdfast;
  const Sequential model{Input{8000},
                         Dense{4000, {.activation = Activation::relu}},
                         Dense{2000, {.activation = Activation::relu}},
                         Dense{500, {.activation = Activation::relu}},
                         Dense{300, {.activation = Activation::relu}},
                         Dense{1, {.activation = Activation::sigmoid}}};
  std::fputs(model.summary().c_str(), stdout);
  return 0;
}
