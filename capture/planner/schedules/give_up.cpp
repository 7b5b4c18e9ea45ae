#include <tapedeck/capture/planner/schedules/give_up.h>

namespace tapedeck {

namespace {

constexpr std::size_t kLongestChain = 128;
// Of a node's cost, this share counts where the node is only moved: it takes no time, but what it reads is kept for it.
constexpr double kMoved = 0.5;
constexpr std::int64_t kSmall = 4;  // across the limit an operand is kept if it is no larger than this part of what is given up

}  // namespace

GiveUp::GiveUp(const Facts& facts, Schedule* schedule)
    : facts_(facts), schedule_(*schedule), planned_(facts.graph->nodes.size(), 0) {
  for (ValueId v = 0; v < facts.graph->value_count(); ++v) {
    const NodeId maker = facts.graph->values[v].node;
    roots_.push_back(
        {facts.bytes[v], maker, facts.overwritten[v], facts.in_arena(v), facts.bytes[v] > 0 && facts.can_repeat(maker)});
  }
}

double GiveUp::cost_of_first(const Gap& gap) const {
  const double cost = facts_.cost[roots_[gap.value].maker];
  return schedule_.waits(gap.value, gap.from) ? kMoved * cost : cost;
}

bool GiveUp::find(const Gap& gap, Ways ways, const Limit& limit, Recipe* recipe) {
  ways_ = ways;
  limit_ = limit;
  recipe->clear();
  recipe->stage = gap.to;
  const NodeId maker = roots_[gap.value].maker;
  const bool found = make_again(maker, recipe);
  recipe->cost += cost_of_first(gap) - facts_.cost[maker];
  for (NodeId n : recipe->clones) planned_[n] = 0;
  return found;
}

void GiveUp::apply(const Gap& gap, const Recipe& recipe) {
  for (NodeId n : recipe.clones) schedule_.add_run(recipe.stage, n);
  for (const Step& step : recipe.hoisted)
    if (schedule_.has_run(step.stage, step.node)) schedule_.remove_with_operands(step.stage, step.node);
  schedule_.remove_if_unread(gap.from, roots_[gap.value].maker);
  schedule_.refresh();
}

bool GiveUp::make_again(NodeId node, Recipe* recipe) {
  if (!facts_.can_repeat(node) || recipe->clones.size() >= kLongestChain) return false;
  planned_[node] = 1;
  recipe->clones.push_back(node);
  recipe->cost += facts_.cost[node];
  ++costed_;
  for (ValueId root : facts_.reads(node))
    if (!have(root, recipe)) return false;
  return true;
}

bool GiveUp::have(ValueId root, Recipe* recipe) {
  const NodeId stage = recipe->stage;
  const Root& known = roots_[root];
  if (!known.in_arena) return known.overwritten >= stage;
  const NodeId maker = known.maker;
  if (planned_[maker]) return true;
  const Schedule::Presence at = schedule_.presence(root, stage);
  if (at.here || at.kept) return true;
  if (may_keep_longer(root, at, recipe)) return true;
  if (ways_.hoist && at.next_makes && facts_.may_keep(root, stage, at.next) && has_room(stage + 1, at.next - 1, known.bytes)) {
    recipe->hoisted.push_back({at.next, maker, false});
    recipe->cost -= facts_.cost[maker];
  }
  return make_again(maker, recipe);
}

// Keeping an operand from its last reader on costs no time. Across the limit it must be small against what is given up.
bool GiveUp::may_keep_longer(ValueId root, const Schedule::Presence& at, Recipe* recipe) const {
  const std::int64_t bytes = roots_[root].bytes;
  if (at.previous == kNone || !facts_.may_keep(root, at.previous, recipe->stage)) return false;
  if (bytes == 0) return true;
  if (at.previous < limit_.stage) {
    const std::int64_t given_up = facts_.bytes[facts_.graph->nodes[recipe->clones.front()].first_output];
    if ((recipe->kept_across_limit + bytes) * kSmall > given_up) return false;
    recipe->kept_across_limit += bytes;
    return true;
  }
  return ways_.keep_longer && has_room(at.previous, recipe->stage - 1, bytes);
}

bool GiveUp::has_room(NodeId first, NodeId last, std::int64_t bytes) const {
  return schedule_.most_live(first, last) + bytes < limit_.bytes;
}

}  // namespace tapedeck
