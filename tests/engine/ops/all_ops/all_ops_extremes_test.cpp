// Tests every op with extreme numbers among its attributes. Such a call is a type error, or its cost and workspace are
// computed, and if its result is small its kernel and its gradient run; nothing overflows, which the build with sanitizers
// shows.
#include <tapedeck/tests/engine/all_ops.h>
#include <tapedeck/tests/engine/seeds.h>

#include <tapedeck/engine/ir/error.h>

#include <array>
#include <random>
#include <regex>

namespace tapedeck::testing {
namespace {

constexpr std::array<const char*, 14> kExtremeNumbers = {
    "-9223372036854775808", "9223372036854775807", "4611686018427387904", "-1",   "0",     "3",   "1000",
    "2147483648",           "-2147483649",         "1099511627776",       "1e30", "-1e30", "inf", "nan"};

// The example with one or two of the numbers in its attributes replaced. Empty if there are none.
std::string with_extremes(const std::string& example, std::mt19937& random) {
  const std::size_t attributes = example.find('{');
  if (attributes == std::string::npos) return {};
  static const std::regex number("-?[0-9]+(\\.[0-9]+)?(e[-+]?[0-9]+)?|-?inf|nan");
  std::string text = example;
  const std::uint32_t count = 1 + random() % 2;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::vector<std::pair<std::size_t, std::size_t>> places;
    for (std::sregex_iterator it(text.begin() + static_cast<std::ptrdiff_t>(attributes), text.end(), number), end; it != end;
         ++it)
      places.emplace_back(attributes + static_cast<std::size_t>(it->position()), static_cast<std::size_t>(it->length()));
    if (places.empty()) return {};
    const auto [at, length] = places[random() % places.size()];
    text.replace(at, length, kExtremeNumbers[random() % kExtremeNumbers.size()]);
  }
  return text;
}

struct Tally {
  int refused = 0, typed = 0, ran = 0;
};

void call_with(const Op& op, const std::string& text, Tally& tally) {
  constexpr std::int64_t kMostElements = 1 << 16;
  try {
    const Example e = parse_example(op, text);
    const std::optional<std::vector<Type>> outputs = inferred(e);
    if (!outputs) {
      ++tally.refused;
      return;
    }
    ++tally.typed;
    const std::vector<Type> operands = operand_types(e);
    const double us = cost_us(op, operands, *outputs, e.attrs());
    EXPECT_GE(us, 0) << text;
    if (total_elements(e, *outputs) > kMostElements || us > 1e5) return;
    const std::int64_t workspace = workspace_bytes(op, operands, *outputs, e.attrs());
    EXPECT_GE(workspace, 0) << text;
    if (workspace > std::int64_t{1} << 30) return;
    const NoGrad no_grad;
    run(e, make_operands(e, DType::f32, 4));
    ++tally.ran;
  } catch (const Error&) {
    ++tally.refused;
  }
}

TEST(AllOpsExtremes, AreErrorsOrResults) {
  constexpr std::uint32_t kSeed = 20261128;
  const int rounds = test::seeds(16);
  Tally tally;
  for (const Op* op : chosen_ops())
    for (const char* example : op->examples)
      for (int round = 0; round < rounds; ++round) {
        std::mt19937 random(kSeed + static_cast<std::uint32_t>(round));
        const std::string text = with_extremes(example, random);
        if (text.empty()) break;
        guarded(*op, text, [&] { call_with(*op, text, tally); });
      }
  std::printf("%d calls are refused, %d have types, %d ran\n", tally.refused, tally.typed, tally.ran);
  EXPECT_GT(tally.refused, 20);
  EXPECT_GT(tally.ran, 20);
}

}  // namespace
}  // namespace tapedeck::testing
