// Forged plans: a graph in its planned order and the JSON of a plan, with a line of dashes between them. A mutation changes a
// few numbers of the plan. Every plan that the checker accepts must replay as eager code does.
#include <tapedeck/capture/file/file.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/fuzzers/fuzz.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <random>
#include <vector>

using namespace tapedeck;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

constexpr std::string_view kLine = "\n----\n";

// Where the numbers of a text are: digits that no letter or quote precedes.
std::vector<std::string_view> numbers_of(std::string_view text) {
  std::vector<std::string_view> numbers;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
    if (end > at && at > 0 && std::strchr(":,[-", text[at - 1])) numbers.push_back(text.substr(at, end - at));
    at = std::max(end, at + 1);
  }
  return numbers;
}

std::string other_number(std::string_view number, const std::vector<std::string_view>& numbers, std::mt19937& random) {
  const std::int64_t value = number.size() < 18 ? std::stoll(std::string(number)) : 0;
  constexpr std::int64_t kSteps[] = {1, -1, 4, -4, 8, 16, -16, 32, 64, -64};
  if (random() % 2) return std::string(numbers[random() % numbers.size()]);
  return std::to_string(std::max<std::int64_t>(value + kSteps[random() % std::size(kSteps)], 0));
}

std::string with_other_numbers(std::string plan, std::mt19937& random) {
  for (auto changes = 1 + random() % 4; changes > 0; --changes) {
    const std::vector<std::string_view> numbers = numbers_of(plan);
    if (numbers.empty()) return plan;
    const std::string_view number = numbers[random() % numbers.size()];
    const std::string other = other_number(number, numbers, random);
    plan.replace(static_cast<std::size_t>(number.data() - plan.data()), number.size(), other);
  }
  return plan;
}

// One record of the plan becomes a copy of another one: both stand on lines of their own.
std::string with_copied_line(const std::string& plan, std::mt19937& random) {
  std::vector<std::string> lines;
  for (std::size_t from = 0; from <= plan.size();) {
    const std::size_t to = std::min(plan.find('\n', from), plan.size());
    lines.push_back(plan.substr(from, to - from));
    from = to + 1;
  }
  lines[random() % lines.size()] = lines[random() % lines.size()];
  std::string text = lines[0];
  for (std::size_t i = 1; i < lines.size(); ++i) text += "\n" + lines[i];
  return text;
}

void check_and_replay(std::string_view text) {
  const std::size_t line = text.find(kLine);
  if (line == std::string_view::npos) return;
  const Graph graph = parse(text.substr(0, line), "fuzz");
  if (!fuzz::can_run(graph)) return;
  const Plan plan = parse_plan(std::string(text.substr(line + kLine.size())), graph);
  if (plan.feasible && plan.peak_bytes < (1 << 24)) fuzz::replay_and_compare(plan, graph);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  const std::string text(fuzz::text_of(data, size));
  const std::size_t line = text.find(kLine);
  if (line == std::string::npos || random() % 16 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::size_t begin = line + kLine.size();
  const std::string plan =
      random() % 8 == 0 ? with_copied_line(text.substr(begin), random) : with_other_numbers(text.substr(begin), random);
  const std::string changed = text.substr(0, begin) + plan;
  const std::size_t kept = std::min(changed.size(), most);
  std::memcpy(data, changed.data(), kept);
  return kept;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::expect_only_errors([&] { check_and_replay(fuzz::text_of(data, size)); });
  return 0;
}
