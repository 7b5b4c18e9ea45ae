// Wishes are resolved here a second time, by the same functions as in a planning, so that plans need not carry them. The cost
// of a wish is the difference of two plans, because what one wish saves may be what another one needs.
#include <tapedeck/capture/explain/wish_costs.h>

#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/plan/wished_values.h>
#include <tapedeck/capture/planner/honour_wishes.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/planner/recompute_wished.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace tapedeck {

namespace {

constexpr std::size_t kMostRefusals = 8;

class OutcomeFinder {
 public:
  OutcomeFinder(const Graph& captured, PlanOptions options)
      : captured_(captured), options_(std::move(options)), passes_({.level = options_.level}, Looks::at_none) {
    passes_.cancel_by(options_.cancel);
    prepared_ = prepare(captured, &passes_, options_.sharing);
    check_wishes_name_something(options_.wishes, captured, prepared_);
    wished_ = find_wished(prepared_, options_.wishes);
    obstacles_ = wished_clones(prepared_, options_).obstacles;
    for (const Node& node : captured.nodes)
      if (node.origin.clone) repeated_.insert(node.origin.of.str());
  }

  std::vector<WishOutcome> find() {
    std::vector<WishOutcome> outcomes;
    for (std::size_t w = 0; w < options_.wishes.size(); ++w) {
      WishOutcome outcome;
      outcome.wish = options_.wishes[w];
      outcome.values = wished_.named[w];
      if (outcome.values == 0) refuse_what_is_gone(&outcome);
      outcomes.push_back(std::move(outcome));
    }
    for (ValueId v = 0; v < prepared_.value_count(); ++v)
      if (wished_.wish_of[v] != kNone) note(v, &outcomes[wished_.wish_of[v]]);
    for (WishOutcome& o : outcomes) o.overruled = o.values - o.honoured - o.refused;
    return outcomes;
  }

 private:
  void note(ValueId v, WishOutcome* outcome) const {
    const std::string why = outcome->wish.kind == WishKind::keep ? why_not_kept(v) : obstacles_[v];
    if (why.empty())
      ++outcome->honoured;
    else
      refuse(prepared_.value_name(v), why, outcome);
  }

  std::string why_not_kept(ValueId v) const {
    const NodeId maker = prepared_.values[v].node;
    if (maker == kNone || !repeated_.count(prepared_.value_name(prepared_.nodes[maker].first_output))) return "";
    return "the captured graph itself computes it again";
  }

  // The pattern names values of the captured graph alone.
  void refuse_what_is_gone(WishOutcome* outcome) const {
    const WishedValues before = find_wished(captured_, {outcome->wish});
    outcome->values = before.named[0];
    for (ValueId v = 0; v < captured_.value_count(); ++v)
      if (before.wish_of[v] == 0) refuse(captured_.value_name(v), "a pass left it out of the planned graph", outcome);
  }

  static void refuse(std::string value, std::string why, WishOutcome* outcome) {
    ++outcome->refused;
    if (outcome->refusals.size() < kMostRefusals) outcome->refusals.push_back({std::move(value), std::move(why)});
  }

  const Graph& captured_;
  const PlanOptions options_;  // with the wishes of the program
  PassRunner passes_;
  Graph prepared_;
  WishedValues wished_;
  std::vector<std::string> obstacles_;  // by value
  std::set<std::string> repeated_;      // first outputs of the nodes that clones of the captured graph repeat
};

std::string counts_text(const WishOutcome& o) {
  std::string text = fmt::format("{} value{}, {} honoured", o.values, o.values == 1 ? "" : "s", o.honoured);
  if (o.overruled > 0) text += fmt::format(", {} left to a later wish", o.overruled);
  if (o.refused > 0) text += fmt::format(", {} not", o.refused);
  return text;
}

std::string cost_text(const WithoutWish& without, const Plan& plan) {
  return fmt::format("      costs {:+} bytes of peak, {:+} bytes of floor and {:+.1f} us{}\n",
                     plan.peak_bytes - without.peak_bytes, plan.floor_bytes - without.floor_bytes,
                     plan.cost_us - without.cost_us,
                     without.feasible == plan.feasible ? ""
                     : without.feasible                ? "; without it the budget can be met"
                                                       : "; without it the budget cannot be met");
}

Graph without_marks(Graph graph, WishKind kind) {
  const NodeWish gone = kind == WishKind::keep ? NodeWish::keep : NodeWish::recompute;
  for (Node& node : graph.nodes)
    if (node.origin.wish == gone) node.origin.wish = NodeWish::none;
  return graph;
}

}  // namespace

std::vector<WishOutcome> wish_outcomes(const Graph& captured, const PlanOptions& options) {
  PlanOptions all = options;
  all.wishes = with_program_wishes(captured, options.wishes);
  if (all.wishes.empty()) return {};
  check_wishes(all.wishes);
  return OutcomeFinder(captured, std::move(all)).find();
}

void add_wish_costs(const Graph& captured, const PlanOptions& options, const Plan& plan, std::vector<WishOutcome>* outcomes) {
  for (std::size_t w = 0; w < outcomes->size(); ++w) {
    PlanOptions other = options;
    const Wish& wish = (*outcomes)[w].wish;
    if (const auto at = std::find(other.wishes.begin(), other.wishes.end(), wish); at != other.wishes.end())
      other.wishes.erase(at);
    other.budget = plan.budget_bytes;
    other.budget_percent = -1;
    const Plan without = make_plan(is_of_program(wish) ? without_marks(captured, wish.kind) : captured, other);
    (*outcomes)[w].without = {{without.feasible, without.peak_bytes, without.floor_bytes, without.cost_us}};
  }
}

std::string wishes_text(const std::vector<WishOutcome>& outcomes, const Plan& plan) {
  std::string text = "wishes:\n";
  for (const WishOutcome& o : outcomes) {
    text += fmt::format("  {:<28} {}\n", wish_text(o.wish), counts_text(o));
    for (const WishRefusal& r : o.refusals) text += fmt::format("      %{}: {}\n", r.value, r.why);
    if (static_cast<std::size_t>(o.refused) > o.refusals.size())
      text += fmt::format("      and {} more\n", static_cast<std::size_t>(o.refused) - o.refusals.size());
    for (const WithoutWish& without : o.without) text += cost_text(without, plan);
  }
  return outcomes.empty() ? "no wish was stated: --keep PATTERN, --recompute PATTERN\n" : text;
}

}  // namespace tapedeck
