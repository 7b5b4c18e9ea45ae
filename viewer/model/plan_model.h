// A plan as a picture: rectangles of address x time, and the curve of live bytes.
//
// The address axis holds every byte the peak counts: external buffers (state, constants, inputs, outputs; they live through the
// whole schedule) stacked from address 0, the arena on top of them. So the top of the arena is the plan's peak, and peak and
// budget are horizontal lines on the same axis. Time is the node index: node n occupies [n, n+1).
//
// A window has no rectangle of its own: the value it looks at lives as long as its windows do. An in-place result takes the
// bytes over at its birth. So (1) arena rectangles do not overlap, and (2) those alive at a node sum to the curve at that node,
// to the byte.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/viewer/model/colours.h>
#include <tapedeck/viewer/model/view.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace tapedeck::viewer {

struct PlanRect {
  ValueId value = kNone;      // kNone: the workspace of `node`
  NodeId node = kNone;        // producer; kNone for external buffers
  NodeId begin = 0, end = 0;  // alive during nodes [begin, end)
  std::int64_t address = 0, bytes = 0;
  RoleClass role = RoleClass::temporary;
};

// The role a value plays in the plan: where its bytes are, and for the arena why they are kept.
RoleClass role_of(const Plan& plan, ValueId v);

class PlanModel {
 public:
  // `curve` is live_bytes(plan), one entry a node.
  PlanModel(std::shared_ptr<const Plan> plan, std::vector<std::int64_t> curve);
  static std::shared_ptr<const PlanModel> of(Plan plan);

  std::uint64_t serial() const { return serial_; }  // no two models of a process share it
  const Plan& plan() const { return *plan_; }
  const Graph& graph() const { return plan_->graph; }
  const std::vector<PlanRect>& rects() const { return rects_; }  // externals first, then by birth
  std::vector<PlanRect> rects_of(ValueId v) const;               // of a window: those of the value it looks at
  const std::vector<std::int64_t>& curve() const { return curve_; }
  // Live bytes by role, parallel to curve(): they sum to it.
  const std::vector<std::int64_t>& curve_of(RoleClass role) const { return role_curves_[static_cast<std::size_t>(role)]; }
  bool has(RoleClass role) const { return present_[static_cast<std::size_t>(role)]; }
  NodeId peak_node() const { return peak_node_; }                  // the first node of the curve's maximum; kNone if no nodes
  std::int64_t external_bytes() const { return external_bytes_; }  // where the arena starts on the address axis
  std::int64_t extent() const { return external_bytes_ + plan_->arena_bytes; }
  NodeId nodes() const { return plan_->graph.node_count(); }

  // What is alive while node n runs, most bytes first.
  std::vector<PlanRect> alive(NodeId n) const;
  // The whole plan, with a little air above the highest line (peak, or the budget where it is near).
  PlanView home() const;
  // The part of the plan that holds a value, with its surroundings.
  PlanView around(ValueId v) const;

 private:
  void lay_out_externals();
  void lay_out_arena();
  void sum_roles();

  std::uint64_t serial_;
  std::shared_ptr<const Plan> plan_;
  std::vector<std::int64_t> curve_;
  std::vector<PlanRect> rects_;
  std::vector<std::int32_t> first_rect_, next_rect_;  // by value: chains into rects_
  std::array<std::vector<std::int64_t>, kRoleClassCount> role_curves_;
  std::array<bool, kRoleClassCount> present_{};
  std::int64_t external_bytes_ = 0;
  NodeId peak_node_ = kNone;
};

}  // namespace tapedeck::viewer
