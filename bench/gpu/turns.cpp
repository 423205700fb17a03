#include "turns.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

double seconds_between(std::chrono::steady_clock::time_point begin, std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

template <class Stream>
Stream open(const std::string& path) {
  Stream stream(path);
  if (!stream) throw Error(ErrorCode::input_output, "cannot open " + path + "; bench/gpu/runs.py makes it");
  return stream;
}

}  // namespace

Turn parse_turn(const std::string& line) {
  Turn turn;
  std::istringstream words(line);
  if (words >> turn.warm >> turn.steps && turn.warm >= 0 && turn.steps > 0) return turn;
  throw Error(ErrorCode::invalid_argument, "a turn is WARM STEPS, two numbers, and not \"" + line + "\"");
}

std::string describe(const TurnReport& report) {
  const auto counted = report.ends.begin() + static_cast<std::ptrdiff_t>(report.turn.warm);
  nlohmann::json times = nlohmann::json::array();
  for (auto end = counted + 1; end != report.ends.end(); ++end) times.push_back(seconds_between(*(end - 1), *end));
  return nlohmann::json{{"steps", report.turn.steps},
                        {"seconds", seconds_between(*counted, report.ends.back())},
                        {"first_step", report.first_step + report.turn.warm},
                        {"times", times},
                        {"loss", report.loss}}
      .dump();
}

Turns::Turns(const std::string& prefix)
    : ask_(open<std::ifstream>(prefix + ".ask")), told_(open<std::ofstream>(prefix + ".told")) {}

void Turns::on_step_end(TrainingContext& context, const Logs& logs) {
  const auto now = std::chrono::steady_clock::now();
  const bool is_under_way = !report_.ends.empty();
  if (is_under_way) {
    report_.ends.push_back(now);
    if (static_cast<std::int64_t>(report_.ends.size()) <= report_.turn.all()) return;
    report_.loss = logs.at("loss");
    told_ << describe(report_) << std::endl;
  }
  begin_turn(context);
}

void Turns::begin_turn(TrainingContext& context) {
  std::string line;
  report_ = {};
  if (!std::getline(ask_, line)) return context.stop_training();
  report_.turn = parse_turn(line);
  report_.first_step = context.step() + 1;
  report_.ends.reserve(static_cast<std::size_t>(report_.turn.all()) + 1);
  report_.ends.push_back(std::chrono::steady_clock::now());
}

}  // namespace holdfast
