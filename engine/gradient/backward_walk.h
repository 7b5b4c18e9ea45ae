// One backward pass. It visits the nodes that a gradient reaches, from the last on the tape to the first, and collects the
// gradient of each value. Other nodes of the tape cost nothing, however many there are. The tape is either the record of eager
// code, or a graph that was put on a capturing recorder (graph_gradient.cpp). Both take the same steps in the same order, so
// both give the same bits. O(n log n) for n nodes that a gradient reaches, and what their vjps cost.
#pragma once

#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/gradient/window_sum.h>

#include <queue>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tapedeck {

// Used in a walk over a graph. The calls of a vjp that belong to the forward pass stand at the end of the tape, as nodes
// [first, last). `twin` is the node whose vjp made these calls.
struct ForwardPart {
  NodeId twin = kNone;
  NodeId first = 0, last = 0;
};

class BackwardWalk {
 public:
  BackwardWalk(Recorder& tape, bool retain, bool create_graph, Site site);
  // Walks over a graph. All tensors are abstract; nothing was kept, and nothing is freed. The walk itself derives which
  // values each node keeps.
  BackwardWalk(Recorder& graph, std::vector<ForwardPart>* forward_parts, Site site);
  void add_target(const Tensor& target, const Tensor& head);
  void add_target(ValueId target, const Tensor& head) { targets_.push_back({target, head}); }
  void run();                                                    // adds the gradients to grad() of the leaves
  std::vector<Tensor> ask_for(const std::vector<Tensor>& wrt);   // returns the gradients of `wrt` only, and writes no grad()
  std::vector<Tensor> ask_for(const std::vector<ValueId>& wrt);  // likewise for values of the tape; the results may share bytes

 private:
  // What the nodes of a checkpoint region made when they ran again.
  struct Recomputed {
    std::unordered_map<ValueId, Tensor> values;
    std::unordered_map<ValueId, ValueId> lost;  // values that cannot be made again -> the operand that was overwritten
  };

  const Node& node(NodeId n) const { return tape_.graph.nodes[n]; }
  const TapeValue& info(ValueId v) const { return tape_.info[v]; }
  const Type& type_of(ValueId v) const { return tape_.graph.values[v].type; }
  bool wanted(ValueId v) const { return !info(v).cut && in_question(v); }
  bool in_question(ValueId v) const { return !only_wanted_ || (static_cast<std::size_t>(v) < wanted_.size() && wanted_[v]); }
  void reach(ValueId v);
  NodeId next_node();
  EagerDevice* device_of_gradients(const Node& at) const;
  void visit(NodeId n);
  void visit_nodes();
  void visit_outside_values();
  void leave_regions(NodeId n);
  void complete(ValueId v);
  void run_hook(const GradHook& hook, Tensor* g) const;
  void offer_gradients(const std::vector<ValueId>& inputs, Vjp* vjp);
  Vjp open(NodeId n, const std::vector<ValueId>& inputs);
  void close(Vjp vjp);
  void run_custom(const CustomBackward& backward, Vjp* vjp, NodeId n);
  bool has_gradient(const Node& node) const;
  bool is_known_zeros(const Tensor& g) const;
  bool has_only_zeros(const Node& node) const;
  void run_vjp(NodeId n, Vjp* vjp);
  std::vector<Tensor> run_forward(NodeId n, const Vjp& vjp, const Derived& derived);
  Tensor value(ValueId v, NodeId reader);
  Tensor saved(ValueId v, NodeId reader) const;
  const Recomputed& recompute(std::int32_t region, NodeId reader);
  void add_piece(ValueId v, const Tensor& piece);
  void add_window(ValueId v, const Vjp::Window& window);
  void add_in_place(Tensor* whole, const Vjp::Window& window) const;
  void settle_windows(ValueId v);
  void release_region(std::int32_t region);
  Tensor own_bytes(Tensor g) const;
  void write_leaf(ValueId v);
  void ask(ValueId v, std::size_t result);
  void mark_wanted();
  std::vector<Tensor> walk_for_results();
  std::string describe(NodeId n) const;
  [[noreturn]] void fail_freed(NodeId n) const;
  [[noreturn]] void fail_without_gradient(NodeId n) const;

  Recorder& tape_;
  Recorder::Hold hold_;
  bool retain_, create_graph_;
  std::vector<ForwardPart>* forward_parts_ = nullptr;  // set only in a walk over a graph
  Site site_;
  std::vector<std::pair<ValueId, Tensor>> targets_;
  std::vector<Tensor> grads_;                       // for each value: the gradient so far
  std::vector<ValueId> reached_;                    // values that got a gradient, some of them several times
  std::priority_queue<NodeId> to_visit_;            // their makers, some of them several times
  std::vector<std::int32_t> entered_regions_;       // checkpoint regions of visited nodes that the walk has not left yet
  std::unordered_map<ValueId, WindowSum> windows_;  // values whose gradient has only windows so far
  std::unordered_map<std::int32_t, Recomputed> recomputed_;  // by checkpoint region; several where keep_here() holds a region
  std::vector<bool> wanted_;                                 // for each value: whether it was computed from a wrt
  bool only_wanted_ = false;
  std::unordered_multimap<ValueId, std::size_t> asked_;  // value -> the positions in `wrt` that ask for its gradient
  std::vector<Tensor> results_;
  Vjp spare_;  // empty lists that have memory, for the next node
  std::unordered_set<const detail::TensorImpl*> written_;
};

}  // namespace tapedeck
