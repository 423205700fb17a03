#pragma once

// Links that misbehave where a test says so.

#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "collective/hosts/link.h"

namespace holdfast {

class WrappedLink : public Link {
 public:
  explicit WrappedLink(std::unique_ptr<Link> link) : link_(std::move(link)) {}

  std::size_t send(std::span<const std::span<const std::byte>> parts) override { return link_->send(parts); }
  std::size_t receive(std::span<std::byte> bytes) override { return link_->receive(bytes); }
  int descriptor() const override { return link_->descriptor(); }
  void shut_down() noexcept override { link_->shut_down(); }

 protected:
  // Sends at most so many bytes.
  std::size_t send_at_most(std::span<const std::span<const std::byte>> parts, std::size_t most) {
    for (const std::span<const std::byte> part : parts) {
      if (part.empty()) continue;
      const std::span<const std::byte> cut = part.first(std::min(most, part.size()));
      return link_->send(std::span(&cut, 1));
    }
    return 0;
  }
  Link& link() { return *link_; }

 private:
  const std::unique_ptr<Link> link_;
};

// Moves at most `most` bytes in each call, and nothing in every other call.
class ShortLink final : public WrappedLink {
 public:
  ShortLink(std::unique_ptr<Link> link, std::size_t most) : WrappedLink(std::move(link)), most_(most) {}

  std::size_t send(std::span<const std::span<const std::byte>> parts) override {
    return ++sends_ % 2 == 0 ? 0 : send_at_most(parts, most_);
  }
  std::size_t receive(std::span<std::byte> bytes) override {
    return ++receives_ % 2 == 0 ? 0 : link().receive(bytes.first(std::min(most_, bytes.size())));
  }

 private:
  const std::size_t most_;
  int sends_ = 0;
  int receives_ = 0;
};

// Works up to a byte, and calls `strike` there, which may throw. If it returns, the link moves nothing any more.
class FaultyLink final : public WrappedLink {
 public:
  enum class Direction { sending, receiving };

  // Adds the bytes of the direction to `moved`.
  FaultyLink(std::unique_ptr<Link> link, Direction direction, std::size_t at, std::size_t& moved,
             std::function<void()> strike)
      : WrappedLink(std::move(link)), direction_(direction), left_(at), moved_(moved), strike_(std::move(strike)) {}

  std::size_t send(std::span<const std::span<const std::byte>> parts) override {
    if (direction_ != Direction::sending) return link().send(parts);
    if (!is_alive()) return 0;
    return count(send_at_most(parts, left_));
  }
  std::size_t receive(std::span<std::byte> bytes) override {
    if (direction_ != Direction::receiving) return link().receive(bytes);
    if (!is_alive()) return 0;
    return count(link().receive(bytes.first(std::min(left_, bytes.size()))));
  }

 private:
  bool is_alive() {
    if (left_ > 0) return true;
    if (!std::exchange(has_struck_, true)) strike_();
    return false;
  }
  std::size_t count(std::size_t moved) {
    left_ -= moved;
    moved_ += moved;
    return moved;
  }

  const Direction direction_;
  std::size_t left_;
  std::size_t& moved_;
  const std::function<void()> strike_;
  bool has_struck_ = false;
};

}  // namespace holdfast
