#include <tapedeck/viewer/plan/range_totals.h>

#include <algorithm>

namespace tapedeck::viewer {

namespace {

void add_extremes(const PlanModel& model, RangeTotals* totals) {
  const auto begin = model.curve().begin();
  const auto [least, most] = std::minmax_element(begin + totals->range.first, begin + totals->range.last + 1);
  totals->least = *least;
  totals->least_at = static_cast<NodeId>(least - begin);
  totals->most_at = static_cast<NodeId>(std::find(begin + totals->range.first, most, *most) - begin);
  totals->most = *most;
}

void add_times(const PlanModel& model, RangeTotals* totals) {
  for (NodeId n = 0; n < model.nodes(); ++n) {
    const double us = model.values().node_us(n);
    totals->step_us += us;
    if (n >= totals->range.first && n <= totals->range.last) totals->us += us;
  }
}

// External buffers are there through the whole schedule.
void add_births_and_deaths(const PlanModel& model, RangeTotals* totals) {
  const auto inside = [&](NodeId n) { return n > totals->range.first && n <= totals->range.last; };
  for (const PlanRect& rect : model.rects()) {
    if (rect.address < model.external_bytes()) continue;
    RangeBytes& role = totals->roles[static_cast<std::size_t>(rect.role)];
    if (inside(rect.begin)) {
      role.born += rect.bytes;
      ++role.born_count;
    }
    if (inside(rect.end)) {
      role.died += rect.bytes;
      ++role.died_count;
    }
  }
}

}  // namespace

RangeTotals range_totals(const PlanModel& model, const NodeRange& range) {
  RangeTotals totals;
  totals.range = range;
  add_extremes(model, &totals);
  add_times(model, &totals);
  add_births_and_deaths(model, &totals);
  for (int i = 0; i < kRoleClassCount; ++i) {
    RangeBytes& role = totals.roles[static_cast<std::size_t>(i)];
    const auto& curve = model.curve_of(static_cast<RoleClass>(i));
    role.at_first = curve[static_cast<std::size_t>(range.first)];
    role.at_last = curve[static_cast<std::size_t>(range.last)];
    totals.all.at_first += role.at_first;
    totals.all.at_last += role.at_last;
    totals.all.born += role.born;
    totals.all.died += role.died;
    totals.all.born_count += role.born_count;
    totals.all.died_count += role.died_count;
  }
  return totals;
}

}  // namespace tapedeck::viewer
