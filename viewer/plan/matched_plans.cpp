#include <tapedeck/viewer/plan/matched_plans.h>

#include <tapedeck/capture/explain/compare_graphs.h>
#include <tapedeck/viewer/words/format.h>
#include <tapedeck/viewer/words/index.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace tapedeck::viewer {

namespace {

using Entries = std::unordered_map<std::string_view, std::int32_t>;

bool is_named(const ComparedPlan& side, const ValueEntry& entry) {
  return !side.model->graph().values[at(entry.copies.front())].name.empty();
}

// Of the values that have names: others have the numbers of their graph.
Entries by_name(const ComparedPlan& side) {
  const std::vector<ValueEntry>& log = side.model->values().log();
  Entries entries;
  entries.reserve(log.size());
  for (std::size_t i = 0; i < log.size(); ++i)
    if (is_named(side, log[i])) entries.emplace(log[i].name, static_cast<std::int32_t>(i));
  return entries;
}

// The names of values in the right step by their names in the left one. Equal names are left out.
std::unordered_map<std::string, std::string> other_names(const ComparedPlan& left, const ComparedPlan& right) {
  std::unordered_map<std::string, std::string> names;
  if (left.captured == right.captured) return names;
  const std::vector<ValueId> matched = matched_values(*left.captured, *right.captured);
  for (std::size_t v = 0; v < matched.size(); ++v) {
    if (matched[v] == kNone) continue;
    std::string a = left.captured->value_name(static_cast<ValueId>(v)), b = right.captured->value_name(matched[v]);
    if (a != b) names.emplace(std::move(a), std::move(b));
  }
  return names;
}

const Placement& placement_of(const ComparedPlan& side, const ValueEntry& entry) {
  return side.model->plan().values[at(entry.copies.front())];
}

}  // namespace

const char* change_name(PlanChange change) {
  static const char* const names[] = {"only left", "only right", "type", "choice", "moved", "same"};
  return names[static_cast<std::size_t>(change)];
}

MatchedPlans::MatchedPlans(ComparedPlan left, ComparedPlan right) : sides_{std::move(left), std::move(right)} { match(); }

PlanChange MatchedPlans::change_of(const ValueEntry& left, const ValueEntry& right) const {
  if (left.type != right.type) return PlanChange::type;
  if (left.choice != right.choice || left.runs.size() != right.runs.size()) return PlanChange::choice;
  const Placement &a = placement_of(sides_[0], left), &b = placement_of(sides_[1], right);
  return a.where == b.where && a.offset == b.offset ? PlanChange::none : PlanChange::moved;
}

// Values that the planner added have no names. They are matched by their op and their matched operands.
class MatchedPlans::ByStructure {
 public:
  explicit ByStructure(const MatchedPlans& plans) : plans_(plans) {
    const std::vector<ValueEntry>& log = plans.sides_[1].model->values().log();
    for (std::size_t i = log.size(); i-- > 0;)
      if (plans.match_of_[1][i] == kNone) free_[key(1, log[i])].push_back(static_cast<std::int32_t>(i));
    free_.erase(Key());
  }

  std::int32_t take(const ValueEntry& left) {
    const auto found = free_.find(key(0, left));
    if (found == free_.end() || found->second.empty()) return kNone;
    const std::int32_t entry = found->second.back();
    found->second.pop_back();
    return entry;
  }

 private:
  using Key = std::vector<std::int32_t>;

  // In entries of the right log. Empty for a named value, for one that no node makes, and where an operand has no match.
  Key key(int side, const ValueEntry& entry) const {
    const PlanModel& model = *plans_.sides_[at(side)].model;
    const Value& value = model.graph().values[at(entry.copies.front())];
    if (!value.name.empty() || value.node == kNone) return {};
    const Node& node = model.graph().nodes[at(value.node)];
    Key key{node.op->id, entry.result};
    for (const ValueId operand : model.graph().inputs(node)) {
      const std::int32_t of_side = model.values().entry_of(operand);
      key.push_back(side == 1 ? of_side : plans_.match_of_[0][at(of_side)]);
      if (key.back() == kNone) return {};
    }
    return key;
  }

  const MatchedPlans& plans_;
  std::map<Key, std::vector<std::int32_t>> free_;  // the unmatched entries of the right log, the last first
};

void MatchedPlans::match() {
  const std::vector<ValueEntry>&left = sides_[0].model->values().log(), &right = sides_[1].model->values().log();
  const Entries in_right = by_name(sides_[1]);
  const auto names = other_names(sides_[0], sides_[1]);
  match_of_[0].assign(left.size(), kNone);
  match_of_[1].assign(right.size(), kNone);
  std::vector<bool> renamed(left.size());
  const auto pair = [&](std::size_t in_left, std::int32_t in_right) {
    match_of_[0][in_left] = in_right;
    match_of_[1][at(in_right)] = static_cast<std::int32_t>(in_left);
  };
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!is_named(sides_[0], left[i])) continue;
    const auto other = names.find(left[i].name);
    const auto found = in_right.find(other == names.end() ? std::string_view(left[i].name) : other->second);
    if (found == in_right.end() || match_of_[1][at(found->second)] != kNone) continue;
    renamed[i] = other != names.end();
    pair(i, found->second);
  }
  ByStructure by_structure(*this);
  for (std::size_t i = 0; i < left.size(); ++i)
    if (match_of_[0][i] == kNone)
      if (const std::int32_t found = by_structure.take(left[i]); found != kNone) pair(i, found);
  for (std::size_t i = 0; i < left.size(); ++i) {
    const std::int32_t match = match_of_[0][i];
    const PlanChange change = match == kNone ? PlanChange::only_left : change_of(left[i], right[at(match)]);
    values_.push_back({{static_cast<std::int32_t>(i), match}, change, renamed[i]});
  }
  for (std::size_t i = 0; i < right.size(); ++i)
    if (match_of_[1][i] == kNone) values_.push_back({{kNone, static_cast<std::int32_t>(i)}, PlanChange::only_right, false});
  for (const MatchedValue& value : values_) ++counts_[static_cast<std::size_t>(value.change)];
  std::stable_sort(values_.begin(), values_.end(),
                   [](const MatchedValue& a, const MatchedValue& b) { return a.change < b.change; });
}

ValueId MatchedPlans::other(int side, ValueId v) const {
  if (v == kNone) return kNone;
  const auto here = static_cast<std::size_t>(side);
  const std::int32_t match = match_of_[here][at(sides_[here].model->values().entry_of(v))];
  return match == kNone ? kNone : sides_[1 - here].model->values().log()[at(match)].copies.front();
}

bool MatchedPlans::equal() const {
  const Plan &a = sides_[0].model->plan(), &b = sides_[1].model->plan();
  const bool equal_numbers =
      a.peak_bytes == b.peak_bytes && a.cost_us == b.cost_us && a.graph.node_count() == b.graph.node_count();
  return equal_numbers && std::all_of(values_.begin(), values_.end(), [&](const MatchedValue& value) {
           if (value.change != PlanChange::none) return false;
           const ValueEntry &left = sides_[0].model->values().log()[at(value.entry[0])],
                            &right = sides_[1].model->values().log()[at(value.entry[1])];
           return left.runs == right.runs && left.readers == right.readers;
         });
}

std::string difference_summary(const MatchedPlans& plans, const ByteUnit& unit) {
  const Plan &a = plans.side(0).model->plan(), &b = plans.side(1).model->plan();
  if (plans.equal()) return "The plans are equal: the same values in the same places, at the same cost.";
  const auto share = [](double x, double y) { return y > 0 ? fmt::format(" ({:+.2f} %)", 100 * (x - y) / y) : std::string(); };
  const std::int64_t bytes = b.peak_bytes - a.peak_bytes;
  const double us = b.cost_us - a.cost_us;
  const auto nodes = static_cast<std::int64_t>(b.graph.node_count()) - a.graph.node_count();
  std::string text = "right against left: peak ";
  text += bytes == 0 ? "equal"
                     : (bytes > 0 ? "+" : "-") + unit.text(std::abs(bytes)) +
                           share(static_cast<double>(b.peak_bytes), static_cast<double>(a.peak_bytes));
  text += ", cost ";
  text += us == 0 ? "equal" : (us > 0 ? "+" : "-") + human_us(std::fabs(us)) + share(b.cost_us, a.cost_us);
  if (nodes != 0)
    text += fmt::format(", {} {} node{}", std::abs(nodes), nodes > 0 ? "more" : "fewer", std::abs(nodes) == 1 ? "" : "s");
  const std::pair<PlanChange, const char*> parts[] = {{PlanChange::only_left, "only left"},
                                                      {PlanChange::only_right, "only right"},
                                                      {PlanChange::type, "of another type"},
                                                      {PlanChange::choice, "chosen otherwise"},
                                                      {PlanChange::moved, "moved"}};
  std::string counts;
  for (const auto& [change, words] : parts)
    if (const std::int64_t n = plans.count(change); n > 0)
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", n, words);
  return text + " · values: " + (counts.empty() ? "all equal" : counts);
}

}  // namespace tapedeck::viewer
