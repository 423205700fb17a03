// The FIFOs of a contender: requests for turns come in lines, and reports go out as lines of JSON.

#include "turns.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <sstream>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

double seconds_between(std::chrono::steady_clock::time_point begin, std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

// Lines come from a script, which may change: a wrong one must not become a turn of zeros.
Turn parse_turn(const std::string& line) {
  Turn turn;
  std::istringstream words(line);
  if (words >> turn.number >> turn.warm >> turn.steps && turn.warm >= 0 && turn.steps > 0) return turn;
  throw Error(ErrorCode::invalid_argument, "a turn is three numbers, NUMBER WARM STEPS, and not \"" + line + "\"");
}

std::string describe(const TurnReport& report) {
  // Warm steps are left out: caches and clocks settle in them.
  const auto counted = report.ends.begin() + static_cast<std::ptrdiff_t>(report.turn.warm);
  nlohmann::json times = nlohmann::json::array();
  for (auto end = counted + 1; end != report.ends.end(); ++end) times.push_back(seconds_between(*(end - 1), *end));
  return nlohmann::json{{"turn", report.turn.number},
                        {"steps", report.turn.steps},
                        {"seconds", seconds_between(*counted, report.ends.back())},
                        {"first_step", report.first_step + report.turn.warm},
                        {"times", times},
                        {"loss", report.loss}}
      .dump();
}

Turns::Turns(const std::string& prefix)
    : ask_(::open((prefix + ".ask").c_str(), O_RDONLY | O_CLOEXEC)), told_(prefix + ".told") {
  if (ask_.is_open() && told_) return;
  throw Error(ErrorCode::input_output, "cannot open " + prefix + ".ask and .told; bench/gpu/runs.py makes them");
}

void Turns::on_step_end(TrainingContext& context, const Logs& logs) {
  const auto now = std::chrono::steady_clock::now();
  // The first step of the run begins the first turn only.
  const bool is_under_way = !report_.ends.empty();
  if (is_under_way) {
    report_.ends.push_back(now);
    if (static_cast<std::int64_t>(report_.ends.size()) <= report_.turn.all()) return;
    report_.loss = logs.at("loss");
    // Flushed, because the other end waits for this line.
    told_ << describe(report_) << std::endl;
  }
  begin_turn(context);
}

void Turns::begin_turn(TrainingContext& context) {
  report_ = {};
  const std::string line = next_line();
  if (line.empty()) return context.stop_training();
  report_.turn = parse_turn(line);
  report_.first_step = context.step() + 1;
  // No allocation within the measured steps.
  report_.ends.reserve(static_cast<std::size_t>(report_.turn.all()) + 1);
  report_.ends.push_back(std::chrono::steady_clock::now());
}

// Waits for as long as the run's hang_after lets a callback wait.
std::string Turns::next_line() {
  for (;;) {
    if (const std::size_t end = read_.find('\n'); end != std::string::npos) {
      const std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    pollfd asked{.fd = ask_.value(), .events = POLLIN, .revents = 0};
    // Interrupted or silent: asked again.
    if (::poll(&asked, 1, 1000) <= 0) continue;
    std::array<char, 256> piece{};
    const ssize_t count = ::read(ask_.value(), piece.data(), piece.size());
    if (count == 0) return {};
    if (count < 0 && errno != EINTR) throw system_error(errno, "cannot read the next turn");
    if (count > 0) read_.append(piece.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace holdfast
