#include <tapedeck/capture/planner/order/order_like.h>

#include <tapedeck/capture/planner/order/find_order.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace tapedeck {

namespace {

class Follower {
 public:
  Follower(const Graph& graph, const OrderProblem& problem)
      : p_(problem), left_(p_.node.size(), 0), has_run_(p_.node.size(), 0), is_named_(p_.node.size(), 0) {
    for (std::int32_t i = 0; i < p_.item_count(); ++i) {
      left_[i] = static_cast<std::int32_t>(p_.before[i].size());
      if (const NodeId n = p_.node[i]; n != kNone) item_of_.emplace(name_of(graph, n), i);
    }
  }

  ItemOrder follow(const Graph& like) {
    std::vector<std::int32_t> wanted;
    for (NodeId n = 0; n < like.node_count(); ++n) {
      const auto it = item_of_.find(name_of(like, n));
      if (it == item_of_.end() || it->first.empty()) continue;
      wanted.push_back(it->second);
      is_named_[it->second] = 1;
    }
    for (const std::int32_t item : wanted) run_behind_all(item);
    for (std::int32_t i = 0; i < p_.item_count(); ++i) run_behind_all(i);
    return std::move(items_);
  }

 private:
  static std::string_view name_of(const Graph& graph, NodeId n) {
    const Node& node = graph.nodes[n];
    return node.n_outputs > 0 ? graph.values[node.first_output].name.view() : std::string_view();
  }

  // What the item waits for and has not run yet, as deep as it goes, then the item.
  void run_behind_all(std::int32_t item) {
    std::vector<std::int32_t> stack = {item};
    while (!stack.empty()) {
      const std::int32_t at = stack.back();
      const auto before = p_.before[at];
      const auto missing = std::find_if(before.begin(), before.end(), [&](std::int32_t b) { return !has_run_[b]; });
      if (missing != before.end()) {
        stack.push_back(*missing);
        continue;
      }
      stack.pop_back();
      if (!has_run_[at]) run(at);
    }
  }

  // Runs the item, and then the items without a name that waited for it alone and that no item waits for.
  void run(std::int32_t item) {
    add(item);
    for (const std::int32_t b : p_.behind[item])
      if (--left_[b] == 0 && !is_named_[b] && p_.behind[b].empty() && !has_run_[b]) add(b);
  }

  void add(std::int32_t item) {
    has_run_[item] = 1;
    items_.push_back(item);
  }

  const OrderProblem& p_;
  std::unordered_map<std::string_view, std::int32_t> item_of_;
  std::vector<std::int32_t> left_;  // by item: how many of those it waits for have not run
  std::vector<char> has_run_, is_named_;
  ItemOrder items_;
};

}  // namespace

std::vector<NodeId> order_like(const Facts& facts, const Graph& like, bool split_phases) {
  const Graph& graph = *facts.graph;
  const std::vector<NodeId> source = own_sources(graph);
  const OrderProblem problem = order_problem(facts, graph, source, split_phases);
  return nodes_in_order(facts, graph, source, problem, Follower(graph, problem).follow(like));
}

}  // namespace tapedeck
