// The value log of a plan (capture/explain/value_log.h), ready to be asked about any value: its entry, its copies, its one
// name, its readers and what its node costs.
#pragma once

#include <tapedeck/capture/cost/cost_model.h>
#include <tapedeck/capture/explain/value_log.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tapedeck::viewer {

class ValueIndex {
 public:
  // `costs` may be null: estimates. `plan` must outlive the index.
  ValueIndex(const Plan& plan, const CostModel* costs, const std::vector<Wish>& wishes);

  const std::vector<ValueEntry>& log() const { return log_; }
  std::int32_t entry_of(ValueId v) const { return entry_of_[static_cast<std::size_t>(v)]; }  // an index of the log
  const ValueEntry& entry(ValueId v) const { return log_[static_cast<std::size_t>(entry_of(v))]; }
  const std::vector<ValueId>& copies(ValueId v) const { return entry(v).copies; }  // v among them
  // The name of the first copy: "%h". A later copy: "%h, run 2 of 3".
  std::string name(ValueId v) const;
  std::span<const NodeId> readers(ValueId v) const;  // the nodes that read v itself, ascending
  // The cost of a run of the node in the plan: views and joined parts are taken off. They sum to the plan's cost.
  double node_us(NodeId n) const { return us_[static_cast<std::size_t>(n)]; }

 private:
  void gather_readers(const Graph& graph);

  std::vector<double> us_;  // by node
  std::vector<ValueEntry> log_;
  std::vector<std::int32_t> entry_of_;      // by value
  std::vector<std::int32_t> first_reader_;  // by value, and one more: where its readers begin
  std::vector<NodeId> readers_;
};

}  // namespace tapedeck::viewer
