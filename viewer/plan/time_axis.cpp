#include <tapedeck/viewer/plan/time_axis.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::viewer {

TimeAxis::TimeAxis(const std::vector<double>& node_us) {
  std::vector<double> starts(node_us.size() + 1, 0);
  for (std::size_t n = 0; n < node_us.size(); ++n) starts[n + 1] = starts[n] + node_us[n];
  if (starts.back() > 0) starts_ = std::move(starts);
}

double TimeAxis::at(double node) const {
  if (starts_.empty()) return node;
  const double last = static_cast<double>(starts_.size() - 1);
  if (!(node > 0)) return 0;
  if (node >= last) return starts_.back();
  const auto n = static_cast<std::size_t>(node);
  return starts_[n] + (node - static_cast<double>(n)) * (starts_[n + 1] - starts_[n]);
}

double TimeAxis::node_at(double position) const {
  if (starts_.empty()) return position;
  if (position >= starts_.back()) return static_cast<double>(starts_.size() - 1);
  if (!(position > 0)) position = 0;
  const auto next = std::upper_bound(starts_.begin(), starts_.end(), position);
  const double start = *std::prev(next);
  return static_cast<double>(next - starts_.begin() - 1) + (position - start) / (*next - start);
}

std::pair<NodeId, NodeId> TimeAxis::nodes_in(double low, double high, NodeId nodes) const {
  if (nodes <= 0) return {0, 0};
  double first = std::max(low, 0.0), end = std::ceil(std::max(high, 0.0));
  if (!starts_.empty()) {
    const auto begin = starts_.begin();
    const auto at_low = std::lower_bound(begin, starts_.end(), low), at_high = std::lower_bound(begin, starts_.end(), high);
    first = static_cast<double>(at_low - begin) - (at_low == starts_.end() || *at_low > low ? 1 : 0);
    end = high >= starts_.back() ? static_cast<double>(nodes) : static_cast<double>(at_high - begin);
  }
  const auto a = static_cast<NodeId>(std::clamp(first, 0.0, static_cast<double>(nodes - 1)));
  return {a, static_cast<NodeId>(std::clamp(end, static_cast<double>(a) + 1, static_cast<double>(nodes)))};
}

}  // namespace tapedeck::viewer
