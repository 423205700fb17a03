#pragma once

// The formulas of optimizers for one element, as templates: of floats in a loop over all elements, and of symbols, by
// which optim/rules/rule_loop.h finds out whether an element program is one of them. Operands stand in the order in
// which the optimizers write them, since a loop takes the place of a program only where each operation is the same.

#include "core/host_device.h"

namespace holdfast::compute {

enum class UpdateRule {
  rmsprop,
  rmsprop_momentum,
  rmsprop_centered,
  rmsprop_both,
  adagrad,
  adadelta,
  adamax,
  nadam,
  lion
};
// As many as the enumerators above: tables of loops have an entry for each.
inline constexpr int kUpdateRules = 9;

// A rule has at most so many numbers and slots, each in the rule's own order.
inline constexpr int kMostRuleNumbers = 6;
inline constexpr int kMostRuleSlots = 3;

// What an update reads and writes of one element. T is float, or a symbol.
template <class T>
struct RuleElement {
  T parameter;
  T gradient;
  T slots[kMostRuleSlots];
};

// What the formulas are stands in the headers of the optimizers. `n` are kNumbers numbers, and `kept` is the factor of
// the parameter before the step. `F` has the functions of element programs for T, and decayed(parameter, kept).
template <UpdateRule kRule>
struct RuleFormula;

template <bool kHasMomentum, bool kIsCentered>
struct RmspropFormula {
  static constexpr int kSlots = 1 + (kHasMomentum ? 1 : 0) + (kIsCentered ? 1 : 0);
  static constexpr int kNumbers = 6;  // rho, 1 - rho, epsilon, rate; if there are such: momentum, 0
  template <class F, class T>
  HOLDFAST_HOST_DEVICE static inline void update(RuleElement<T>& of, const T* n, const T& kept) {
    const T velocity = of.slots[0] * n[0] + F::square(of.gradient) * n[1];
    T variance = velocity;
    if constexpr (kIsCentered) {
      const T average = of.slots[kSlots - 1] * n[0] + of.gradient * n[1];
      // Rounding may give less than n[5] = 0, and the root of that is NaN.
      variance = F::maximum(velocity - F::square(average), n[5]);
      of.slots[kSlots - 1] = average;
    }
    of.slots[0] = velocity;
    T change = of.gradient * n[3] / F::square_root(variance + n[2]);
    if constexpr (kHasMomentum) {
      change = of.slots[1] * n[4] + change;
      of.slots[1] = change;
    }
    of.parameter = F::decayed(of.parameter, kept) - change;
  }
};

template <>
struct RuleFormula<UpdateRule::rmsprop> : RmspropFormula<false, false> {};
template <>
struct RuleFormula<UpdateRule::rmsprop_momentum> : RmspropFormula<true, false> {};
template <>
struct RuleFormula<UpdateRule::rmsprop_centered> : RmspropFormula<false, true> {};
template <>
struct RuleFormula<UpdateRule::rmsprop_both> : RmspropFormula<true, true> {};

template <>
struct RuleFormula<UpdateRule::adagrad> {
  static constexpr int kSlots = 1;
  static constexpr int kNumbers = 2;  // epsilon, rate
  template <class F, class T>
  HOLDFAST_HOST_DEVICE static inline void update(RuleElement<T>& of, const T* n, const T& kept) {
    const T accumulator = of.slots[0] + F::square(of.gradient);
    of.parameter = F::decayed(of.parameter, kept) - of.gradient * n[1] / F::square_root(accumulator + n[0]);
    of.slots[0] = accumulator;
  }
};

template <>
struct RuleFormula<UpdateRule::adadelta> {
  static constexpr int kSlots = 2;
  static constexpr int kNumbers = 4;  // rho, 1 - rho, epsilon, rate
  template <class F, class T>
  HOLDFAST_HOST_DEVICE static inline void update(RuleElement<T>& of, const T* n, const T& kept) {
    const T gradients = of.slots[0] * n[0] + F::square(of.gradient) * n[1];
    // The root is of the changes before this one, which is added to them below.
    const T change = F::square_root(of.slots[1] + n[2]) * of.gradient / F::square_root(gradients + n[2]);
    of.slots[1] = of.slots[1] * n[0] + F::square(change) * n[1];
    of.parameter = F::decayed(of.parameter, kept) - change * n[3];
    of.slots[0] = gradients;
  }
};

template <>
struct RuleFormula<UpdateRule::adamax> {
  static constexpr int kSlots = 2;
  static constexpr int kNumbers = 4;  // 1 - beta_1, beta_2, epsilon, rate
  template <class F, class T>
  HOLDFAST_HOST_DEVICE static inline void update(RuleElement<T>& of, const T* n, const T& kept) {
    const T momentum = of.slots[0] + (of.gradient - of.slots[0]) * n[0];
    // The infinity norm of Kingma and Ba, 2015, section 7.1.
    const T norm = F::maximum(of.slots[1] * n[1], F::absolute(of.gradient));
    of.parameter = F::decayed(of.parameter, kept) - momentum * n[3] / (norm + n[2]);
    of.slots[0] = momentum;
    of.slots[1] = norm;
  }
};

template <>
struct RuleFormula<UpdateRule::nadam> {
  static constexpr int kSlots = 2;
  static constexpr int kNumbers = 6;  // 1 - beta_1, 1 - beta_2, epsilon; of the step: two rates, a correction
  template <class F, class T>
  HOLDFAST_HOST_DEVICE static inline void update(RuleElement<T>& of, const T* n, const T& kept) {
    const T momentum = of.slots[0] + (of.gradient - of.slots[0]) * n[0];
    const T velocity = of.slots[1] + (F::square(of.gradient) - of.slots[1]) * n[1];
    const T ahead = momentum * n[3] + of.gradient * n[4];
    of.parameter = F::decayed(of.parameter, kept) - ahead / (F::square_root(velocity * n[5]) + n[2]);
    of.slots[0] = momentum;
    of.slots[1] = velocity;
  }
};

template <>
struct RuleFormula<UpdateRule::lion> {
  static constexpr int kSlots = 1;
  static constexpr int kNumbers = 5;  // beta_1, 1 - beta_1, beta_2, 1 - beta_2, rate
  template <class F, class T>
  HOLDFAST_HOST_DEVICE static inline void update(RuleElement<T>& of, const T* n, const T& kept) {
    // Before the slot is updated: direction and slot have a beta each, and both begin with the same momentum.
    const T direction = F::sign(of.slots[0] * n[0] + of.gradient * n[1]);
    of.parameter = F::decayed(of.parameter, kept) - direction * n[4];
    of.slots[0] = of.slots[0] * n[2] + of.gradient * n[3];
  }
};

}  // namespace holdfast::compute
