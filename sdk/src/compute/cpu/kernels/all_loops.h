#pragma once

// The table of the instruction set that the including source is compiled for.

#ifndef HOLDFAST_INSTRUCTION_SET
#error "a source of loops defines HOLDFAST_INSTRUCTION_SET first, so that shared functions stay in it"
#endif

#include "compute/cpu/kernels/activation_loops.h"
#include "compute/cpu/kernels/chain_loops.h"
#include "compute/cpu/kernels/column_loops.h"
#include "compute/cpu/kernels/dropout_loops.h"
#include "compute/cpu/kernels/element_loops.h"
#include "compute/cpu/kernels/loss_loops.h"
#include "compute/cpu/kernels/optimizer_loops.h"
#include "compute/cpu/kernels/past_cache_loops.h"
#include "compute/cpu/kernels/reduction_loops.h"
#include "compute/cpu/kernels/softmax_loops.h"
#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

constexpr VectorKernels kernels_of_this_source(InstructionSet set) {
  return {.set = set,
          .relu = kPassesOf<Relu>,
          .tanh = kPassesOf<Tanh>,
          .sigmoid = kPassesOf<Sigmoid>,
          .gelu = kPassesOf<Gelu>,
          .softmax = softmax,
          .softmax_backward = softmax_backward,
          .softmax_row = softmax_row,
          .binary_loss_of_logits = element_losses<binary_loss_of_logit>,
          .binary_loss_of_probabilities = element_losses<binary_loss_of_probability>,
          .squared_error = element_losses<squared_error>,
          .categorical_loss = categorical_loss,
          .sum = sum,
          .scale = scale,
          .scale_and_subtract = scale_and_subtract,
          .column_sums = column_sums,
          .column_moments = column_moments,
          .normalization_sums = normalization_sums,
          .normalize = normalize,
          .normalize_backward = normalize_backward,
          .run_instruction = run_instruction,
          .reduce = reduce,
          .reduce_products = reduce_products,
          .add_rows = add_rows,
          .find_chain = find_chain,
          .adam = adam,
          .sgd = sgd,
          .lamb_slots = lamb_slots_of_all,
          .lamb_parameters = lamb_parameters,
          .rules = {rule_loop<UpdateRule::rmsprop>, rule_loop<UpdateRule::rmsprop_momentum>,
                    rule_loop<UpdateRule::rmsprop_centered>, rule_loop<UpdateRule::rmsprop_both>,
                    rule_loop<UpdateRule::adagrad>, rule_loop<UpdateRule::adadelta>, rule_loop<UpdateRule::adamax>,
                    rule_loop<UpdateRule::nadam>, rule_loop<UpdateRule::lion>},
          .squares_of_chunk = chunk_squares,
          .clip_values = clip_values,
          .scaled = scaled,
          .add_past_cache = add_past_cache,
          .dropout = dropout};
}

}  // namespace
}  // namespace holdfast::compute
