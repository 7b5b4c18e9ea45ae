#include <tapedeck/capture/planner/solvers/charged_knapsack.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapedeck {

namespace {

constexpr int kSteps = 28;      // of the search for the best price of a byte
constexpr double kRange = 1e4;  // it is looked for up to this multiple of the guess
constexpr double kGolden = 0.61803398874989485;
constexpr double kRounding = 1e-13;  // of the largest terms, which nearly cancel

}  // namespace

void ChargedKnapsack::clear() {
  nodes_.clear();
  operands_.clear();
}

void ChargedKnapsack::add_node(double cost, std::int64_t given) {
  nodes_.push_back({cost, static_cast<double>(given), operands_.size()});
}

void ChargedKnapsack::add_operand(std::int32_t maker, std::int64_t bytes, double maker_part, double reader_part) {
  operands_.push_back({maker, static_cast<double>(bytes), maker_part, reader_part});
}

double ChargedKnapsack::bound_at(double byte_price, double excess) {
  double freed = 0;
  price_.resize(nodes_.size());
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const std::size_t end = n + 1 < nodes_.size() ? nodes_[n + 1].first_operand : operands_.size();
    double price = nodes_[n].cost;
    for (std::size_t i = nodes_[n].first_operand; i < end; ++i) {
      const Operand& o = operands_[i];
      double charge = byte_price * o.bytes;
      if (o.maker != kKeptOnly) charge = std::min(charge, price_[static_cast<std::size_t>(o.maker)] * o.maker_part);
      price += charge * o.reader_part;
    }
    price_[n] = price;
    freed += std::max(0.0, byte_price * nodes_[n].given - price);
  }
  return byte_price * excess - freed - kRounding * (byte_price * excess + freed);
}

// The bound is concave in the price of a byte, so a golden section finds its maximum.
double ChargedKnapsack::least_cost(std::int64_t excess, double guess) {
  if (excess <= 0 || !(guess > 0)) return 0;
  const auto at = [&](double log_price) { return bound_at(std::exp(log_price), static_cast<double>(excess)); };
  double low = std::log(guess) - 1, high = std::log(guess) + std::log(kRange);
  double left = high - kGolden * (high - low), right = low + kGolden * (high - low);
  double at_left = at(left), at_right = at(right), best = std::max({0.0, at_left, at_right});
  for (int i = 0; i < kSteps; ++i) {
    if (at_left >= at_right) {
      high = std::exchange(right, left);
      at_right = at_left;
      at_left = at(left = high - kGolden * (high - low));
    } else {
      low = std::exchange(left, right);
      at_left = at_right;
      at_right = at(right = low + kGolden * (high - low));
    }
    best = std::max({best, at_left, at_right});
  }
  return best;
}

}  // namespace tapedeck
