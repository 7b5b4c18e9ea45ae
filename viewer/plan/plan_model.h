// A plan as a picture: rectangles of address x time, and the curve of live bytes.
//
// The address axis holds every byte that the peak counts. External buffers (state, constants, inputs, outputs) live through the
// whole schedule; they are stacked from address 0, and the arena lies on top of them. So the top of the arena is the plan's
// peak, and peak and budget are horizontal lines on one axis. Time is the index of the node: node n occupies [n, n+1).
//
// A view of another value's bytes has no rectangle of its own: the rectangle of the other value lasts as long as its views. An
// in-place result takes over the bytes at its birth. So arena rectangles do not overlap, and the sizes of the rectangles alive
// at a node sum exactly to the curve at this node.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/viewer/plan/block_maxima.h>
#include <tapedeck/viewer/plan/shared_bytes.h>
#include <tapedeck/viewer/plan/time_axis.h>
#include <tapedeck/viewer/plan/value_index.h>
#include <tapedeck/viewer/plan/view.h>
#include <tapedeck/viewer/words/colours.h>
#include <tapedeck/viewer/words/table.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// One rectangle. Addresses and sizes are bytes.
struct PlanRect {
  ValueId value = kNone;      // kNone: the workspace of `node`
  NodeId node = kNone;        // the producer; kNone for external buffers
  NodeId begin = 0, end = 0;  // alive during nodes [begin, end)
  std::int64_t address = 0, bytes = 0;
  RoleClass role = RoleClass::temporary;
};

// The role of a value in the plan: the kind of its memory and, inside the arena, the reason why its bytes are kept.
RoleClass role_of(const Plan& plan, ValueId v);

class NodesByValue;

// The rectangles and curves of one plan. Immutable, so any thread may read it.
class PlanModel {
 public:
  // `curve` is live_bytes(plan), one entry per node. `costs` and `wishes` are those that the plan was made with; null:
  // estimates.
  PlanModel(std::shared_ptr<const Plan> plan, std::vector<std::int64_t> curve, std::shared_ptr<const CostModel> costs = {},
            std::vector<Wish> wishes = {});
  // The value log, the tables and the orders that tables are shown in are made here too, so that the UI thread does not have to
  // make them. Another thread destroys the model, whoever drops the last reference (release_later.h).
  static std::shared_ptr<const PlanModel> of(Plan plan, std::shared_ptr<const CostModel> costs = {},
                                             std::vector<Wish> wishes = {});
  // The same without the value log and the tables, which take ten times as long as the pictures. The thread that made the model
  // calls complete() when the pictures are on their way. Until then, the UI thread asks for neither of them.
  static std::shared_ptr<const PlanModel> pictures_of(Plan plan, std::shared_ptr<const CostModel> costs = {},
                                                      std::vector<Wish> wishes = {});
  void complete() const;
  bool is_complete() const;

  std::uint64_t serial() const { return serial_; }  // unique among all models of the process
  const Plan& plan() const { return *plan_; }
  const Graph& graph() const { return plan_->graph; }
  const std::vector<PlanRect>& rects() const { return rects_; }  // external buffers first, then by birth
  std::vector<PlanRect> rects_of(ValueId v) const;               // for a view: the rectangles of the value that it views
  const std::vector<std::int64_t>& curve() const { return curve_; }
  const BlockMaxima& maxima() const { return maxima_; }  // of curve()
  // Live bytes by role, parallel to curve(): they sum to it.
  const std::vector<std::int64_t>& curve_of(RoleClass role) const { return role_curves_[static_cast<std::size_t>(role)]; }
  bool has(RoleClass role) const { return present_[static_cast<std::size_t>(role)]; }
  // Live bytes by node in each of `layers` layers. `layer_of` gives the layer of a rectangle, by its index. They sum to
  // curve(). O(rectangles + nodes * layers).
  std::vector<std::vector<std::int64_t>> curves_by(const std::function<std::size_t(std::size_t)>& layer_of,
                                                   std::size_t layers) const;
  // The first node at the maximum of the curve; kNone if the graph has no nodes.
  NodeId peak_node() const { return peak_node_; }
  std::int64_t external_bytes() const { return external_bytes_; }  // the address at which the arena starts
  std::int64_t extent() const { return external_bytes_ + plan_->arena_bytes; }
  NodeId nodes() const { return plan_->graph.node_count(); }
  // The value log, and the contents of the tables. Each is made once, by whoever asks first.
  const ValueIndex& values() const;
  const Table& table(TableId id) const;
  const NodesByValue& nodes_by_value() const;
  const SharedBytes& shared_bytes() const;  // made together with the pictures
  std::string name_of(ValueId v) const;
  // The segment of a node, an index of plan().segments; kNone if it is in none.
  std::int32_t segment_of(NodeId n) const;
  // By phase, and last for clones: whether the plan has such nodes.
  static constexpr std::size_t kClonePhase = 3;
  const std::array<bool, kClonePhase + 1>& phases() const { return phases_; }
  // The axis of time that counts nodes, or the microseconds of this plan.
  std::shared_ptr<const TimeAxis> time_axis(TimeUnit unit) const;
  const CostModel* costs() const;  // that the plan was made with; null: estimates

  // The rectangles alive while node n runs, largest first; at most the first `most` of them. Cost: O(rectangles), and sorting
  // those that are returned.
  std::vector<PlanRect> alive(NodeId n, std::size_t most = kAll) const;
  static constexpr std::size_t kAll = static_cast<std::size_t>(-1);
  const std::vector<PlanRect>& alive_at_peak() const;  // made once, as the tables; empty if the graph has no nodes
  // The view of the whole plan. It reaches above the peak of keeping everything, so that a smaller plan looks smaller.
  PlanView home() const;
  // The view of a value's rectangles and their surroundings.
  PlanView around(ValueId v) const;

 private:
  void lay_out_externals();
  void lay_out_arena();
  void sum_roles();

  std::uint64_t serial_;
  std::shared_ptr<const Plan> plan_;
  std::vector<std::int64_t> curve_;
  BlockMaxima maxima_;
  std::vector<PlanRect> rects_;
  std::vector<std::int32_t> first_rect_, next_rect_;  // by value: chains into rects_
  std::array<std::vector<std::int64_t>, kRoleClassCount> role_curves_;
  std::array<bool, kRoleClassCount> present_{};
  std::array<bool, kClonePhase + 1> phases_{};
  std::int64_t external_bytes_ = 0;
  NodeId peak_node_ = kNone;
  struct Later;  // what is made when it is asked for
  std::shared_ptr<Later> later_;
};

}  // namespace tapedeck::viewer
