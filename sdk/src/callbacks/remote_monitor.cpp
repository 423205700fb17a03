// Delivery must cost the training nothing, so a thread of its own sends, and the queue is bounded. How many epochs were
// delivered is kept in a file next to the savepoints and not in the training state, which must not depend on a network:
// the next process goes on after them. Not the file system of the training, which the watchdog watches for savepoints.
// See docs/decisions/records.md

#include "holdfast/observe/remote_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <utility>

#include "callbacks/http_post.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/log.h"
#include "holdfast/base/whole_file.h"
#include "train/state/logs_json.h"

namespace holdfast {
namespace {

// A server that is back is found within this time, and a dead one gets one request in it.
constexpr auto kLongestPause = std::chrono::seconds(60);

// "https://host:port", the part of the URL that may be shown.
struct Server {
  std::string shown{};
  bool is_encrypted = false;
  bool is_of_this_host = false;
};

[[noreturn]] void refuse_monitor(const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("RemoteMonitor {}", why));
}

// 127.a.b.c in four numbers of 0 to 255. A number with a zero before it may be octal, or the name of a server.
bool is_loopback_address(std::string_view host) {
  if (!host.starts_with("127.")) return false;
  int numbers = 0;
  for (std::string_view rest = host;; ++numbers) {
    const std::string_view number = rest.substr(0, rest.find('.'));
    const bool is_number = !number.empty() && number.size() <= 3 && (number == "0" || number.front() != '0') &&
                           std::ranges::all_of(number, [](char digit) { return digit >= '0' && digit <= '9'; });
    if (!is_number || std::stoi(std::string(number)) > 255) return false;
    if (number.size() == rest.size()) return numbers == 3;
    rest.remove_prefix(number.size() + 1);
  }
}

// Only names that no name server decides about: headers may go there in clear text.
bool is_this_host(std::string_view authority) {
  const std::size_t colon = authority.rfind(':');
  const bool has_port = colon != std::string_view::npos && !authority.ends_with(']');
  const std::string_view port = has_port ? authority.substr(colon + 1) : std::string_view();
  const std::string_view host = has_port ? authority.substr(0, colon) : authority;
  if (!std::ranges::all_of(port, [](char digit) { return digit >= '0' && digit <= '9'; })) return false;
  return host == "localhost" || host == "[::1]" || is_loopback_address(host);
}

bool has_blank(std::string_view address) {
  return std::ranges::any_of(address, [](unsigned char byte) { return byte <= ' ' || byte == 127; });
}

Server server_of(const std::string& root) {
  Server server{.is_encrypted = root.starts_with("https://")};
  if (!server.is_encrypted && !root.starts_with("http://")) {
    refuse_monitor("needs a root that begins with http:// or https://");
  }
  const std::size_t host = root.find("//") + 2;
  const std::size_t end = std::min(root.find_first_of("/?#", host), root.size());
  const std::string authority = root.substr(host, end - host);
  if (authority.empty() || has_blank(root))
    refuse_monitor("needs a root with the name of a server, such as http://host:9000");
  if (authority.find('@') != std::string::npos) {
    refuse_monitor("takes no credentials in its root, where logs could show them; write them into headers_file");
  }
  server.shown = root.substr(0, end);
  server.is_of_this_host = is_this_host(authority);
  return server;
}

// A form and a header need it.
std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                          (byte >= '0' && byte <= '9') ||
                          std::string_view("-._~").find(letter) != std::string_view::npos;
    encoded += is_plain ? std::string(1, letter) : fmt::format("%{:02X}", byte);
  }
  return encoded;
}

// The sentence of an error never has what a line says: it may be a secret.
std::vector<std::string> read_headers(const std::string& path) {
  std::vector<std::string> headers;
  if (path.empty()) return headers;
  const std::string text = read_text_file(posix_file_system(), path);
  std::string_view rest = text;
  for (int line = 1; !rest.empty(); ++line) {
    std::string_view header = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(header.size() + 1, rest.size()));
    if (header.ends_with('\r')) header.remove_suffix(1);
    if (header.empty()) continue;
    const bool is_text = std::ranges::all_of(header, [](unsigned char byte) { return byte >= ' ' && byte != 127; });
    if (!is_text || header.find(':') == std::string_view::npos || header.starts_with(':')) {
      refuse_monitor(
          fmt::format("cannot send line {} of {} as a header; write \"Name: value\" in each line", line, path));
    }
    headers.emplace_back(header);
  }
  return headers;
}

std::string last_part(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return {};
  const std::size_t begin = path.find_last_of('/', end);
  return path.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

}  // namespace

struct RemoteMonitor::Counts {
  std::atomic<std::uint64_t> delivered = 0;
  std::atomic<std::uint64_t> dropped = 0;
};

// What is under way of one fit().
class RemoteMonitor::Sender {
 public:
  struct Course {
    std::string run;
    int trainer = 0;
    std::int64_t call = 0;
    std::string record;  // of what was delivered; empty: none

    bool operator==(const Course&) const = default;
  };

  Sender(const RemoteMonitorOptions& options, Course course, std::shared_ptr<Counts> counts)
      : options_(options),
        course_(std::move(course)),
        counts_(std::move(counts)),
        server_(server_of(options.root)),
        headers_(read_headers(options.headers_file)),
        next_(delivered_before()),
        thread_([this] { serve(); }) {}

  ~Sender() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  const Course& course() const { return course_; }

  // After a failure the state may be at an earlier epoch, whose repetition has the same logs.
  void enqueue(const std::vector<Logs>& epochs) {
    const std::lock_guard lock(mutex_);
    // The oldest goes where the queue is full: the newest says most about a run that is watched.
    for (; next_ < static_cast<std::int64_t>(epochs.size()); ++next_) {
      queue_.push_back({next_, epochs[static_cast<std::size_t>(next_)]});
      if (queue_.size() <= options_.queue) continue;
      queue_.pop_front();
      drop(1, "its queue is full");
    }
    changed_.notify_all();
  }

  void flush() {
    std::unique_lock lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
    if (changed_.wait_for(lock, options_.flush_limit, [this] { return queue_.empty() && !is_recording_; })) return;
    const std::size_t left = queue_.size();
    if (left == 0) return;
    // The thread may be sending one of these, and settle() finds it gone.
    queue_.clear();
    drop(left, "fit() has ended");
  }

 private:
  struct Item {
    std::int64_t epoch = 0;
    Logs logs;
  };
  enum class Fate { delivered, refused, failed };

  void serve() {
    std::unique_lock lock(mutex_);
    std::chrono::milliseconds pause = options_.first_pause;
    for (;;) {
      changed_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
      if (is_stopping_) return;
      // A copy, and without the lock: a request may take its whole timeout, and the training adds epochs meanwhile.
      const Item item = queue_.front();
      lock.unlock();
      std::string why;
      const Fate fate = send(item, why);
      lock.lock();
      settle(item, fate, why);
      if (fate != Fate::failed) {
        // Without the lock, since a disk may be slow; flush() waits for the record, too. A process that dies before it
        // is written sends the epoch again, and the server knows it by its key.
        is_recording_ = true;
        lock.unlock();
        keep_record(item.epoch + 1);
        lock.lock();
        is_recording_ = false;
        changed_.notify_all();
      }
      if (is_stopping_) return;
      if (fate != Fate::failed) {
        pause = options_.first_pause;
        continue;
      }
      // The end of fit() does not wait for a long pause.
      changed_.wait_for(lock, is_ending_ ? options_.first_pause : pause, [this] { return is_stopping_.load(); });
      pause = std::min<std::chrono::milliseconds>(2 * pause, kLongestPause);
    }
  }

  // Called with mutex_ held. The item may have been dropped meanwhile.
  void settle(const Item& item, Fate fate, const std::string& why) {
    if (fate == Fate::failed) {
      if (!std::exchange(has_told_failure_, true)) {
        log(LogLevel::warning,
            fmt::format("RemoteMonitor cannot reach {} and tries again; training goes on: {}", server_.shown, why));
      }
      return;
    }
    has_told_failure_ = false;
    if (!queue_.empty() && queue_.front().epoch == item.epoch) queue_.pop_front();
    if (fate == Fate::delivered) {
      ++counts_->delivered;
    } else {
      drop(1, fmt::format("the server refuses it ({})", why));
    }
    changed_.notify_all();
  }

  Fate send(const Item& item, std::string& why) {
    nlohmann::json body = logs_json(item.logs);
    body["run"] = course_.run;
    body["call"] = course_.call;
    body["epoch"] = item.epoch;
    // Calls are counted within a Trainer. The first one sends what a run of one Trainer does.
    const bool is_first_trainer = course_.trainer == 0;
    if (!is_first_trainer) body["trainer"] = course_.trainer + 1;
    const std::string trainer = is_first_trainer ? "" : fmt::format("trainer{}/", course_.trainer + 1);
    HttpPost request{.url = options_.root + options_.path,
                     .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                     .headers = headers_,
                     .ca_file = options_.ca_file,
                     .timeout = options_.timeout,
                     .is_cancelled = [this] { return is_stopping_.load(); }};
    if (!options_.send_as_json) request.body = percent_encoded(options_.field) + "=" + percent_encoded(request.body);
    request.headers.push_back(options_.send_as_json ? "Content-Type: application/json"
                                                    : "Content-Type: application/x-www-form-urlencoded");
    request.headers.push_back(
        fmt::format("Idempotency-Key: {}/{}{}/{}", percent_encoded(course_.run), trainer, course_.call, item.epoch));
    const HttpOutcome outcome = post(request);
    why = outcome.failure.empty() ? fmt::format("status {}", outcome.status) : outcome.failure;
    if (outcome.status >= 200 && outcome.status < 300) return Fate::delivered;
    // Without an answer (status 0), after a fault of the server, after a timeout (408) or too many requests (429), the
    // same request may succeed later. Other statuses would come back each time.
    const bool may_pass =
        outcome.status < 300 || outcome.status >= 500 || outcome.status == 408 || outcome.status == 429;
    return may_pass ? Fate::failed : Fate::refused;
  }

  // Called with mutex_ held. The log says it at the first one, the second, the fourth and so on, so that a dead server
  // does not fill it.
  void drop(std::size_t count, const std::string& why) {
    const std::uint64_t before = counts_->dropped;
    counts_->dropped += count;
    if (std::bit_width(before) == std::bit_width(before + count)) return;
    log(LogLevel::warning,
        fmt::format("RemoteMonitor has dropped {} epochs so far, the last one because {} (server {})", before + count,
                    why, server_.shown));
  }

  // The epochs of this call that an earlier process delivered.
  std::int64_t delivered_before() const {
    if (course_.record.empty() || !posix_file_system().exists(course_.record)) return 0;
    const nlohmann::json record =
        nlohmann::json::parse(read_text_file(posix_file_system(), course_.record), nullptr, false);
    const bool is_of_this_call = record.is_object() && record.value("call", nlohmann::json()) == course_.call;
    const nlohmann::json epochs = is_of_this_call ? record.value("epochs", nlohmann::json()) : nlohmann::json();
    return epochs.is_number_integer() ? std::max<std::int64_t>(epochs.get<std::int64_t>(), 0) : 0;
  }

  // Without it the next process would send more epochs again, which the server knows by their keys.
  void keep_record(std::int64_t epochs) const {
    if (course_.record.empty()) return;
    const std::string text = nlohmann::json{{"call", course_.call}, {"epochs", epochs}}.dump() + "\n";
    try {
      write_whole_file(posix_file_system(), course_.record, std::as_bytes(std::span(text)));
    } catch (const Error& failure) {
      log(LogLevel::warning, fmt::format("RemoteMonitor cannot note what it delivered: {}", failure.what()));
    }
  }

  const RemoteMonitorOptions options_;
  const Course course_;
  const std::shared_ptr<Counts> counts_;
  const Server server_;
  const std::vector<std::string> headers_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;         // guarded by mutex_
  std::int64_t next_;              // epoch to be queued; guarded by mutex_
  bool is_ending_ = false;         // guarded by mutex_
  bool is_recording_ = false;      // guarded by mutex_
  bool has_told_failure_ = false;  // guarded by mutex_
  std::atomic<bool> is_stopping_ = false;

  // Last: it begins at once and uses all members above.
  std::thread thread_;
};

RemoteMonitor::RemoteMonitor(RemoteMonitorOptions options)
    : options_(std::move(options)), counts_(std::make_shared<Counts>()) {
  if (!can_post()) {
    throw Error(ErrorCode::unsupported,
                "RemoteMonitor needs a Holdfast that was built with libcurl; install libcurl4-openssl-dev and build "
                "again");
  }
  const Server server = server_of(options_.root);
  if (!options_.path.starts_with('/') || has_blank(options_.path)) {
    refuse_monitor("needs a path that begins with / and has no blanks, such as /publish/epoch/end/");
  }
  if (!options_.headers_file.empty() && !server.is_encrypted && !server.is_of_this_host) {
    refuse_monitor(fmt::format("would send the headers of {} in clear text to {}; use https", options_.headers_file,
                               server.shown));
  }
  if (options_.queue == 0 || options_.timeout.count() <= 0 || options_.first_pause.count() <= 0 ||
      options_.flush_limit.count() < 0) {
    refuse_monitor("needs a queue, a timeout and a first_pause above 0, and a flush_limit of at least 0");
  }
}
RemoteMonitor::~RemoteMonitor() = default;
RemoteMonitor::RemoteMonitor(RemoteMonitor&&) noexcept = default;

// Without the path, whose query may have a secret.
std::string RemoteMonitor::name() const {
  return "remote_monitor/" + server_of(options_.root).shown;
}

std::uint64_t RemoteMonitor::delivered() const {
  return counts_->delivered;
}

std::uint64_t RemoteMonitor::dropped() const {
  return counts_->dropped;
}

// Two calls of two Trainers may have the same number.
void RemoteMonitor::on_fit_begin(TrainingContext& context) {
  sender_.reset();
  EpochRecord::on_fit_begin(context);
}

// Only adds to the queue. A file of headers that cannot be read is an error where fit() begins.
void RemoteMonitor::write(const TrainingContext& context, const std::vector<Logs>& epochs) {
  const std::string directory = context.run_directory();
  // Later Trainers of a run have folders of their own in its directory.
  const std::string of_run = context.trainer() == 0 || directory.empty() ? directory : parent_folder(directory);
  const Sender::Course course{.run = options_.run.empty() ? last_part(of_run) : options_.run,
                              .trainer = context.trainer(),
                              .call = context.call(),
                              .record = directory.empty() ? "" : directory + "/remote_monitor.json"};
  if (!sender_ || sender_->course() != course) {
    // Its thread ends before the next one begins.
    sender_.reset();
    sender_ = std::make_unique<Sender>(options_, course, counts_);
  }
  sender_->enqueue(epochs);
}

// Waits for flush_limit at most. What is left in the queue then is dropped and counted.
void RemoteMonitor::finish(const TrainingContext&) {
  if (sender_) sender_->flush();
}

}  // namespace holdfast
