#include <tapedeck/viewer/plan/value_index.h>
#include <tapedeck/viewer/words/index.h>

#include <algorithm>

namespace tapedeck::viewer {

namespace {

// Whether the node reads the value at place i of its operands for the first time.
bool is_first(std::span<const ValueId> inputs, std::size_t i) {
  return std::find(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(i), inputs[i]) ==
         inputs.begin() + static_cast<std::ptrdiff_t>(i);
}

}  // namespace

ValueIndex::ValueIndex(const Plan& plan, const CostModel* costs, const std::vector<Wish>& wishes)
    : us_(cost_nodes(plan.graph, costs).us), log_(value_log(plan, us_, wishes)), entry_of_(plan.values.size(), kNone) {
  for (std::size_t e = 0; e < log_.size(); ++e) {
    for (const ValueId v : log_[e].copies) entry_of_[at(v)] = static_cast<std::int32_t>(e);
    if (log_[e].result == 0)
      for (const NodeId n : log_[e].runs) us_[at(n)] = log_[e].us;
  }
  gather_readers(plan.graph);
}

void ValueIndex::gather_readers(const Graph& graph) {
  const auto for_each_read = [&](auto&& act) {
    for (NodeId n = 0; n < graph.node_count(); ++n) {
      const auto inputs = graph.inputs(graph.nodes[at(n)]);
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (is_first(inputs, i)) act(inputs[i], n);
    }
  };
  first_reader_.assign(graph.values.size() + 1, 0);
  for_each_read([&](ValueId v, NodeId) { ++first_reader_[at(v) + 1]; });
  for (std::size_t v = 1; v < first_reader_.size(); ++v) first_reader_[v] += first_reader_[v - 1];
  readers_.resize(at(first_reader_.back()));
  std::vector<std::int32_t> next(first_reader_.begin(), first_reader_.end() - 1);
  for_each_read([&](ValueId v, NodeId n) { readers_[at(next[at(v)]++)] = n; });
}

std::string ValueIndex::name(ValueId v) const {
  const ValueEntry& e = entry(v);
  const auto run = std::find(e.copies.begin(), e.copies.end(), v) - e.copies.begin();
  const std::string name = "%" + e.name;
  return run == 0 ? name : name + ", run " + std::to_string(run + 1) + " of " + std::to_string(e.copies.size());
}

std::span<const NodeId> ValueIndex::readers(ValueId v) const {
  return {readers_.data() + first_reader_[at(v)], at(first_reader_[at(v) + 1] - first_reader_[at(v)])};
}

}  // namespace tapedeck::viewer
