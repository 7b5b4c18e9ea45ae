// One backward pass: gradients by value, collected while the tape is walked in reverse.
#pragma once

#include <tapedeck/engine/recorder.h>
#include <tapedeck/engine/vjp.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tapedeck {

class BackwardWalk {
 public:
  BackwardWalk(Recorder& tape, bool retain, bool create_graph, Site site);
  void add_target(const Tensor& target, const Tensor& head);
  void run();                                                       // into the leaves' grad()
  std::vector<Tensor> ask_for(const std::vector<Tensor>& wrt);      // of these alone, and nothing is written

 private:
  const Node& node(NodeId n) const { return tape_.graph.nodes[static_cast<std::size_t>(n)]; }
  const TapeValue& info(ValueId v) const { return tape_.info[static_cast<std::size_t>(v)]; }
  const Type& type_of(ValueId v) const { return tape_.graph.values[static_cast<std::size_t>(v)].type; }
  bool wanted(ValueId v) const { return !info(v).cut && in_question(v); }
  bool in_question(ValueId v) const { return !only_wanted_ || (static_cast<std::size_t>(v) < wanted_.size() && wanted_[static_cast<std::size_t>(v)]); }
  void visit(NodeId n);
  void complete(ValueId v);
  void run_hook(const GradHook& hook, Tensor* g) const;
  Vjp open(NodeId n, const std::vector<ValueId>& inputs);
  void run_custom(const CustomBackward& backward, Vjp* vjp, NodeId n);
  bool has_gradient(const Node& node) const;
  Tensor value(ValueId v, NodeId reader);
  Tensor saved(ValueId v, NodeId reader) const;
  bool carries_gradient(NodeId n) const;
  void recompute(std::int32_t region, NodeId reader);
  void add_piece(ValueId v, const Tensor& piece);
  void release_region(std::int32_t region);
  Tensor own_bytes(Tensor g) const;
  void write_leaf(ValueId v);
  std::vector<ValueId> values_of(const Tensor& t) const;
  std::string describe(NodeId n) const;
  [[noreturn]] void fail_freed(NodeId n) const;

  Recorder& tape_;
  Recorder::Hold hold_;
  bool retain_, create_graph_;
  Site site_;
  std::vector<std::pair<ValueId, Tensor>> targets_;
  std::vector<Tensor> grads_;                           // by value
  std::unordered_map<ValueId, Tensor> recomputed_;      // of the region being walked
  std::int32_t open_region_ = kNone;
  std::vector<bool> wanted_;                            // by value: on a way from a wrt
  bool only_wanted_ = false;
  std::unordered_multimap<ValueId, std::size_t> asked_; // value -> which wrt
  std::vector<Tensor> results_;
  std::unordered_set<const detail::TensorImpl*> written_;
};

}  // namespace tapedeck
