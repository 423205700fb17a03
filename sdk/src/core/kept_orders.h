#pragma once

// The last two orders that a stage drew. An order is a function of its key, so one that was dropped is drawn again with
// the same bits. Any thread, several at once.

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "holdfast/core/random.h"

namespace holdfast {

using SampleOrder = std::vector<std::uint32_t>;

// `Key` names an order: seed, epoch and whatever else it depends on.
template <typename Key>
class KeptOrders {
 public:
  // Place `index` of the order of `key`, which `draw()` makes if it is not kept. Orders are never empty.
  template <typename Draw>
  std::uint32_t at(const Key& key, std::size_t index, const Draw& draw) const {
    // Held while an order is drawn: several threads want the same one at once, and it is drawn once.
    const std::lock_guard lock(mutex_);
    const auto is_wanted = [&](const KeptOrder& kept) { return !kept.order.empty() && kept.key == key; };
    if (!is_wanted(kept_[0])) {
      // The order that was used last stays in the second place. Threads at the border of two orders need both in turns.
      std::swap(kept_[0], kept_[1]);
      if (!is_wanted(kept_[0])) kept_[0] = {.key = key, .order = draw()};
    }
    return kept_[0].order[index];
  }

 private:
  struct KeptOrder {
    Key key{};
    SampleOrder order;  // empty if unused
  };

  // Two, because a batch may cross the border of two orders, and a validation epoch may come between.
  mutable std::mutex mutex_;
  mutable std::array<KeptOrder, 2> kept_;  // guarded by mutex_; the most recently used one is first
};

// Fisher and Yates: every permutation is equally likely.
template <typename Element>
void permute(std::span<Element> elements, Random& random) {
  for (std::size_t left = elements.size(); left > 1; --left) {
    std::swap(elements[left - 1], elements[random.below(left)]);
  }
}

}  // namespace holdfast
