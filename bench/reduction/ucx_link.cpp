// UCX has streams, which are what a Link is. A send may use its buffer until it completes, while a Link's may not, so
// bytes are copied into slots, as a socket copies them into the kernel.

#include "ucx_link.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "holdfast/base/deadline.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast {
namespace {

// So many sends may be under way at once. While all slots are in use, send() takes nothing, as a full socket does.
constexpr std::size_t kSlots = 8;
// A peer that is gone must not hold the destructor for longer.
constexpr std::chrono::seconds kTimeToClose(1);
constexpr std::size_t kSlotBytes = std::size_t{256} * 1024;

void require(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return;
  throw Error(ErrorCode::unavailable, fmt::format("UCX cannot {}: {}", what, ucs_status_string(status)));
}

// Blocks, by asking again: both sides are there, and send little.
void send_all(Link& link, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    bytes = bytes.subspan(link.send(std::span(&bytes, 1)));
    std::this_thread::yield();
  }
}

void receive_all(Link& link, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    bytes = bytes.subspan(link.receive(bytes));
    std::this_thread::yield();
  }
}

class UcxLink final : public Link {
 public:
  explicit UcxLink(std::unique_ptr<Link> socket)
      : socket_(std::move(socket)), ready_(::eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC)) {
    begin();
    connect();
  }

  // What was sent last is still under way, and the peer waits for it, unless a generation was ended.
  ~UcxLink() override {
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = is_over_ ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    // Each handle goes before the one that it belongs to: received bytes, endpoint, requests, worker, context.
    if (received_ != nullptr) ucp_stream_data_release(endpoint_, received_);
    void* const closing = ucp_ep_close_nbx(endpoint_, &how);
    if (UCS_PTR_IS_PTR(closing)) {
      const Deadline deadline = Deadline::after(kTimeToClose);
      while (ucp_request_check_status(closing) == UCS_INPROGRESS && !deadline.has_passed())
        ucp_worker_progress(worker_);
      ucp_request_free(closing);
    }
    for (Slot& slot : slots_) {
      if (slot.request != nullptr) ucp_request_free(slot.request);
    }
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }

  std::size_t send(std::span<const std::span<const std::byte>> parts) override {
    move();
    Slot* const slot = free_slot();
    if (slot == nullptr) return 0;
    // Several parts share a slot, so that a header and what follows it become one message. The slot stays free until it
    // has a request.
    std::size_t taken = 0;
    for (const std::span<const std::byte> part : parts) {
      const std::size_t count = std::min(part.size(), kSlotBytes - taken);
      std::memcpy(slot->bytes.data() + taken, part.data(), count);
      taken += count;
      if (count < part.size()) break;
    }
    if (taken == 0) return 0;
    const ucp_request_param_t none{};
    void* const sending = ucp_stream_send_nbx(endpoint_, slot->bytes.data(), taken, &none);
    if (UCS_PTR_IS_ERR(sending)) throw LinkClosed(ucs_status_string(UCS_PTR_STATUS(sending)));
    slot->request = sending;  // null: it is done
    return taken;
  }

  std::size_t receive(std::span<std::byte> bytes) override {
    move();
    // UCX lends a buffer of its own, which may hold more than was asked for. The rest waits in `left_`, and the buffer
    // goes back once that is empty.
    if (left_.empty()) {
      std::size_t length = 0;
      void* const data = ucp_stream_recv_data_nb(endpoint_, &length);
      if (data == nullptr) return 0;
      if (UCS_PTR_IS_ERR(data)) throw LinkClosed(ucs_status_string(UCS_PTR_STATUS(data)));
      left_ = {static_cast<const std::byte*>(data), length};
      received_ = data;
    }
    const std::size_t count = std::min(bytes.size(), left_.size());
    std::memcpy(bytes.data(), left_.data(), count);
    left_ = left_.subspan(count);
    if (left_.empty()) ucp_stream_data_release(endpoint_, std::exchange(received_, nullptr));
    return count;
  }

  int descriptor() const override { return ready_.value(); }

  // Any thread may call it, but only one may use the worker. So it leaves a word, which move() reads.
  void shut_down() noexcept override { is_over_ = true; }

 private:
  struct Slot {
    std::vector<std::byte> bytes = std::vector<std::byte>(kSlotBytes);
    void* request = nullptr;  // of a send that is not done
  };

  void begin() {
    ucp_config_t* config = nullptr;
    require(ucp_config_read(nullptr, nullptr, &config), "read its configuration");
    // Left to itself, UCX would choose shared memory within a machine, and the comparison is about a network.
    if (std::getenv("UCX_TLS") == nullptr) require(ucp_config_modify(config, "TLS", "tcp"), "choose TCP");
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_STREAM;
    const ucs_status_t status = ucp_init(&params, config, &context_);
    // Before the status is looked at, since require() may throw.
    ucp_config_release(config);
    require(status, "begin");
    ucp_worker_params_t of_worker{};
    of_worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    of_worker.thread_mode = UCS_THREAD_MODE_SINGLE;
    require(ucp_worker_create(context_, &of_worker, &worker_), "make a worker");
  }

  void connect() {
    ucp_address_t* own = nullptr;
    std::uint64_t length = 0;
    require(ucp_worker_get_address(worker_, &own, &length), "tell its address");
    send_all(*socket_, std::as_bytes(std::span(&length, 1)));
    send_all(*socket_, {reinterpret_cast<const std::byte*>(own), length});
    ucp_worker_release_address(worker_, own);
    receive_all(*socket_, std::as_writable_bytes(std::span(&length, 1)));
    std::vector<std::byte> peer(length);
    receive_all(*socket_, peer);
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.address = reinterpret_cast<const ucp_address_t*>(peer.data());
    // Without this mode on both sides a forced close, as in the destructor, is undefined.
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    require(ucp_ep_create(worker_, &params, &endpoint_), "connect");
  }

  // As UCX moves nothing by itself, a rank that waits does so here.
  void move() {
    if (is_over_) throw LinkClosed("it was shut down");
    ucp_worker_progress(worker_);
  }

  // Sends have no callback, so this is where they are found to have ended or failed.
  Slot* free_slot() {
    for (Slot& slot : slots_) {
      if (slot.request == nullptr) return &slot;
      const ucs_status_t status = ucp_request_check_status(slot.request);
      if (status == UCS_INPROGRESS) continue;
      ucp_request_free(std::exchange(slot.request, nullptr));
      if (status != UCS_OK) throw LinkClosed(ucs_status_string(status));
      return &slot;
    }
    return nullptr;
  }

  const std::unique_ptr<Link> socket_;
  const FileDescriptor ready_;
  std::atomic<bool> is_over_ = false;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  std::array<Slot, kSlots> slots_{};
  std::span<const std::byte> left_{};  // of what was received last
  void* received_ = nullptr;
};

}  // namespace

std::unique_ptr<Link> ucx_link(std::unique_ptr<Link> socket) {
  return std::make_unique<UcxLink>(std::move(socket));
}

}  // namespace holdfast
