// Finds an order in steps, each only if the order found so far is above the bound that all orders have:
//
//     recorded --> list schedules --> search of sets --> single nodes moved <--> stretches around the peak searched
//
// Small problems have all their sets searched, which is exact. For others the search asks for less and less, and the whole is
// repeated with four times the work as long as that lowers the peak by a hundredth.
#include <tapedeck/capture/planner/order/find_order.h>

#include <tapedeck/capture/planner/order/list_schedules.h>
#include <tapedeck/capture/planner/order/local_search.h>
#include <tapedeck/capture/planner/order/set_search.h>
#include <tapedeck/capture/planner/order/stretch_search.h>

#include <tapedeck/engine/ir/graph_access.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace tapedeck {

namespace {

constexpr std::int64_t kWorkPerItem = 500;
constexpr std::int64_t kLeastWork = 100'000;
constexpr std::int32_t kSmall = 24;  // items whose sets are all kept, if the work allows
constexpr std::int32_t kAllSets = 1 << 22;
constexpr std::int64_t kFineness = 256;  // of the peak: finer steps are left to climbing

std::int64_t most(const std::vector<std::int64_t>& live) {
  return live.empty() ? 0 : *std::max_element(live.begin(), live.end());
}

class OrderFinder {
 public:
  OrderFinder(const OrderProblem& problem, const OrderOptions& options) : p_(problem), options_(options) {}

  struct Best {
    std::string name = "recorded";
    ItemOrder items;
    std::int64_t peak = 0;
    bool optimal = false;
  };

  Best find() {
    best_.items = recorded_order(p_);
    best_.peak = most(live_in_order(p_, best_.items));
    bound_ = order_bound(p_);
    if (!done()) try_lists();
    if (!done() && p_.item_count() <= kSmall)
      search_all();
    else
      search();
    best_.optimal = best_.peak == bound_;
    return std::move(best_);
  }

 private:
  bool done() const { return best_.peak <= bound_ || bound_ >= options_.below || (options_.cancel && options_.cancel->load()); }

  void take(const char* name, ItemOrder items) {
    const std::int64_t peak = most(live_in_order(p_, items));
    if (peak >= best_.peak) return;
    best_ = {name, std::move(items), peak, false};
  }

  void try_lists() {
    for (ListOrder& list : list_orders(p_, options_.cancel)) take(list.name, std::move(list.items));
  }

  OrderFound search(std::int64_t below, std::int64_t good, std::int32_t width, std::int32_t branches, std::int64_t work) {
    OrderFound found = search_orders(p_, {below, good, width, branches, work, options_.cancel});
    work_left_ -= found.work;
    if (!found.items.empty()) take("searched", found.items);
    return found;
  }

  // Searches all sets. If the search ends without leaving a set out, the best order has the least peak of all orders.
  void search_all() {
    if (search(best_.peak, bound_, kAllSets, 0, p_.item_count() <= kExactItems ? std::int64_t{1} << 40 : options_.most_work)
            .complete)
      bound_ = best_.peak;
  }

  // Is there an order that needs no more than this? Asked for ever less; steps grow where the answer is yes, and shrink where
  // none is found.
  void search_downwards() {
    const std::int64_t fine = std::max<std::int64_t>(1, best_.peak / kFineness);
    for (std::int32_t width : {4, 32}) {
      std::int64_t low = bound_, step = std::max<std::int64_t>(fine, (best_.peak - bound_) / 8);
      while (!done() && work_left_ > 0 && step >= fine && best_.peak - low >= fine) {
        const std::int64_t wanted = std::max(low, best_.peak - step);
        const OrderFound found = search(wanted + 1, wanted, width, width, work_left_);
        step = found.items.empty() ? step / 4 : step * 2;
        if (!found.items.empty()) continue;
        low = wanted + 1;
        if (found.complete) bound_ = low;
      }
    }
  }

  // Single nodes and stretches around the peak, in turn, as long as both win. Moving nodes may take half of what is left,
  // stretches the rest.
  void polish() {
    for (std::int64_t before = best_.peak + 1; best_.peak < before && !done() && work_left_ > 0;) {
      before = best_.peak;
      Climbed climbed = climb_order(p_, best_.items, {bound_, (work_left_ + 1) / 2, options_.cancel});
      work_left_ -= std::max<std::int64_t>(climbed.work, 1);
      take("searched", std::move(climbed.items));
      StretchSearch stretches{bound_, work_left_, options_.cancel};
      ItemOrder items = best_.items;
      search_stretches(p_, &stretches, &items);
      work_left_ = stretches.work;
      take("searched", std::move(items));
    }
  }

  // Work is added as long as it wins a hundredth.
  void search() {
    for (std::int64_t work = base_work(), all = 0; !done() && all < options_.most_work;
         work = std::min(4 * work, options_.most_work - all)) {
      const std::int64_t before = best_.peak;
      work_left_ = work;
      search_downwards();
      work_left_ = std::max(work_left_, work / 2);
      polish();
      all += work;
      if (options_.work >= 0 || before - best_.peak < before / 100) break;
    }
  }

  std::int64_t base_work() const {
    return options_.work >= 0 ? options_.work
                              : std::min(std::max(kWorkPerItem * p_.item_count(), kLeastWork), options_.most_work);
  }

  const OrderProblem& p_;
  const OrderOptions& options_;
  std::int64_t work_left_ = 0;
  std::int64_t bound_ = 0;
  Best best_;
};

}  // namespace

NodeOrder find_order(const Facts& facts, const Graph& graph, const std::vector<NodeId>& source, const OrderOptions& options) {
  const OrderProblem problem = order_problem(facts, graph, source, options.split_phases);
  const OrderFinder::Best best = OrderFinder(problem, options).find();
  NodeOrder order{best.name, {}, best.peak, best.optimal};
  if (best.name != "recorded") order.nodes = nodes_in_order(facts, graph, source, problem, best.items);
  return order;
}

std::vector<NodeOrder> find_list_orders(const Facts& facts, const Graph& graph, const std::vector<NodeId>& source,
                                        bool split_phases, const std::atomic<bool>* cancel) {
  const OrderProblem problem = order_problem(facts, graph, source, split_phases);
  std::vector<NodeOrder> orders;
  for (const ListOrder& list : list_orders(problem, cancel))
    orders.push_back({list.name, nodes_in_order(facts, graph, source, problem, list.items),
                      most(live_in_order(problem, list.items)), false});
  return orders;
}

std::vector<NodeId> own_sources(const Graph& graph) {
  std::vector<NodeId> sources(graph.nodes.size());
  std::iota(sources.begin(), sources.end(), 0);
  return sources;
}

namespace {

// Constants are buffers, and buffers keep their numbers: what is known of the graph that the clones were written into holds for
// this one.
void number_constants_as(const Graph& from, const std::vector<NodeId>& nodes, Graph* to) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Literal* literal = from.literal(from.nodes[nodes[i]]);
    if (!literal) continue;
    const Node& node = to->nodes[i];
    const TensorIndex index{static_cast<std::int32_t>(literal - from.constants.data())};
    std::memcpy(GraphAccess::attributes(*to, node) + tensor_field(*node.op)->offset, &index, sizeof index);
  }
  to->constants = from.constants;
}

// The node written last waits for `v` alone; for nobody if that is kNone.
void wait_for(Graph* graph, NodeId last, ValueId v) {
  Node& node = graph->nodes[last];
  graph->refs.resize(static_cast<std::size_t>(node.first_after));
  if (v != kNone) graph->refs.push_back(v);
  node.n_after = v != kNone;
}

}  // namespace

Graph reorder(const Graph& graph, const std::vector<NodeId>& nodes) {
  Rewriter rewriter(graph);
  for (NodeId n : nodes) rewriter.copy(n);
  return rewriter.finish();
}

ClonedGraph reorder(const ClonedGraph& cloned, const std::vector<NodeId>& nodes) {
  const Graph& from = cloned.graph;
  std::vector<char> made(
      cloned.source.empty() ? 0 : static_cast<std::size_t>(*std::max_element(cloned.source.begin(), cloned.source.end())) + 1,
      0);
  Rewriter rewriter(from);
  ClonedGraph result;
  ValueId before_clones = kNone;  // made by the last node that is neither a clone, nor late, nor a constant
  for (NodeId n : nodes) {
    const Node& node = from.nodes[n];
    result.source.push_back(cloned.source[n]);
    if (!std::exchange(made[cloned.source[n]], 1)) {
      const NodeId copied = rewriter.copy(n);
      result.late.push_back(!cloned.late.empty() && cloned.late[n]);
      if (result.late.back())
        wait_for(&rewriter.graph(), copied, before_clones);
      else if (node.n_outputs > 0 && !from.literal(node))
        before_clones = rewriter.at(node.first_output + node.n_outputs - 1);
      continue;
    }
    result.late.push_back(0);
    std::vector<ValueId> operands, after;
    for (ValueId v : from.inputs(node)) operands.push_back(rewriter.at(v));
    if (before_clones != kNone && std::find(operands.begin(), operands.end(), before_clones) == operands.end())
      after.push_back(before_clones);
    const ValueId first = rewriter.graph().nodes[rewriter.clone(n, operands, after)].first_output;
    for (std::int32_t i = 0; i < node.n_outputs; ++i) rewriter.replace(node.first_output + i, first + i);
  }
  result.graph = rewriter.finish();
  number_constants_as(from, nodes, &result.graph);
  return result;
}

}  // namespace tapedeck
