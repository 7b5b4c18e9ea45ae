#include <tapedeck/capture/onnx/export/random_source.h>

#include <tapedeck/engine/control/control.h>
#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/engine/ops/control.h>
#include <tapedeck/engine/ops/random.h>

#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

namespace tapedeck::onnx {

namespace {

// A graph, and the node of the graph around it whose region it is. `at` is null in a region that was entered from outside.
struct Frame {
  const tapedeck::Graph* graph;
  const tapedeck::Node* holder;
  const ModelBuilder* at;
};

const tapedeck::Node& node_of(const tapedeck::Graph& g, NodeId n) { return g.nodes[static_cast<std::size_t>(n)]; }

// The graphs from the outermost one to that of `at`.
std::vector<Frame> frames_of(const ModelBuilder& at) {
  std::vector<Frame> frames;
  for (const ModelBuilder* b = &at; b != nullptr; b = b->outer()) {
    const tapedeck::Node* holder = b->outer() == nullptr ? nullptr : &node_of(b->outer()->graph(), b->holder());
    frames.insert(frames.begin(), {&b->graph(), holder, b});
  }
  return frames;
}

bool is_plain_alias(const tapedeck::Node& node) { return node.op == &ops::alias || node.op == &ops::stop_gradient; }

enum class Enters { nowhere, captured, slice, pass };

// The way in which an input of a region enters it, and the operand of the node that it is.
std::pair<Enters, std::size_t> way_in(const tapedeck::Node& holder, const LoopAttrs* loop, ValueId input) {
  const auto i = static_cast<std::size_t>(input);
  if (holder.op == &ops::cond) return {Enters::captured, i + 1};
  if (holder.op != &ops::scan && holder.op != &ops::while_loop) return {Enters::nowhere, 0};
  if (i == 0) return {Enters::pass, 0};
  const auto carried = static_cast<std::size_t>(loop->carried), scanned = static_cast<std::size_t>(loop->scanned);
  if (i <= carried) return {Enters::nowhere, 0};
  return {i <= carried + scanned ? Enters::slice : Enters::captured, i - 1};
}

class Walk {
 public:
  Walk(const ModelBuilder& at, ValueId state) : frames_(frames_of(at)), v_(state) {}

  std::optional<RandomSource> run() {
    while (frames_.size() > 1 || made_by_a_node())
      if (!(made_by_a_node() ? through_node() : out())) return {};
    found_.name = frames_[0].at->name_of(v_) + found_.name;
    return found_;
  }

 private:
  const tapedeck::Graph& graph() const { return *frames_.back().graph; }
  bool made_by_a_node() const { return graph().values[static_cast<std::size_t>(v_)].node != kNone; }
  const LoopAttrs* loop() const {
    return static_cast<const LoopAttrs*>(frames_[frames_.size() - 2].graph->attributes(*frames_.back().holder));
  }
  std::pair<Enters, std::size_t> way_in_here(ValueId input) const { return way_in(*frames_.back().holder, loop(), input); }

  // From an input of a region to the value outside.
  bool out() {
    const auto [way, operand] = way_in_here(v_);
    if (way != Enters::captured && way != Enters::slice) return false;
    const Frame inner = frames_.back();
    frames_.pop_back();
    v_ = graph().inputs(*inner.holder)[operand];
    return way == Enters::captured || into_stack(inner);
  }

  // From a slice of a stack to the result of the scan that made the stack, in the same pass.
  bool into_stack(const Frame& inner) {
    if (inner.at == nullptr || !pass_.empty() || !made_by_a_node()) return false;
    const tapedeck::Node& maker = node_of(graph(), graph().values[static_cast<std::size_t>(v_)].node);
    if (maker.op != &ops::scan) return false;
    const auto result = static_cast<std::size_t>(v_ - maker.first_output);
    if (result < static_cast<std::size_t>(static_cast<const LoopAttrs*>(graph().attributes(maker))->carried)) return false;
    const tapedeck::Graph& body = *graph().regions_of(maker)[0];
    pass_ = inner.at->name_of(0);
    frames_.push_back({&body, &maker, nullptr});
    v_ = body.outputs[result];
    return true;
  }

  bool through_node() {
    const tapedeck::Node& node = node_of(graph(), graph().values[static_cast<std::size_t>(v_)].node);
    const auto inputs = graph().inputs(node);
    if (node.op == &ops::rng_next || is_plain_alias(node)) {
      if (!is_plain_alias(node)) found_.name = "/next" + found_.name;
      v_ = inputs[0];
      return true;
    }
    if (node.op != &ops::fold_in) return false;
    const std::string which = number_of(inputs[1]);
    if (which.empty()) return false;
    const auto& a = *static_cast<const FoldInAttrs*>(graph().attributes(node));
    found_.name = fmt::format("/{}[{}]", a.path.view(), which) + found_.name;
    v_ = inputs[0];
    return true;
  }

  // The number that is folded in: a constant, a value of the outermost graph, or the number of the pass. Empty: another one.
  std::string number_of(ValueId v) {
    for (std::size_t k = frames_.size();;) {
      const Frame& f = frames_[k - 1];
      const NodeId maker = f.graph->values[static_cast<std::size_t>(v)].node;
      if (maker != kNone) {
        const tapedeck::Node& node = node_of(*f.graph, maker);
        if (is_plain_alias(node)) {
          v = f.graph->inputs(node)[0];
          continue;
        }
        const Literal* literal = f.graph->literal(node);
        if (literal == nullptr || literal->data == nullptr) return k == 1 ? f.at->name_of(v) : "";
        std::int64_t number = 0;
        std::memcpy(&number, literal->data.get(), sizeof number);
        return std::to_string(number);
      }
      if (k == 1) return f.at->name_of(v);
      const auto* attrs = static_cast<const LoopAttrs*>(frames_[k - 2].graph->attributes(*f.holder));
      const auto [way, operand] = way_in(*f.holder, attrs, v);
      if (way == Enters::pass) return pass_of(k - 1);
      if (way != Enters::captured) return "";
      --k;
      v = frames_[k - 1].graph->inputs(*f.holder)[operand];
    }
  }

  std::string pass_of(std::size_t frame) {
    const Frame& f = frames_[frame];
    ++found_.loops;
    if (f.at == nullptr && pass_.empty()) return "";
    found_.pass = f.at == nullptr ? pass_ : f.at->name_of(0);
    if (f.holder->op == &ops::scan) {
      std::vector<Type> types = frames_[frame - 1].graph->input_types(*f.holder);
      const auto& attrs = *static_cast<const LoopAttrs*>(frames_[frame - 1].graph->attributes(*f.holder));
      found_.trips = layout_of(attrs, types, *f.graph).trips;
    }
    return fmt::format("pass of {}", frame);
  }

  std::vector<Frame> frames_;
  ValueId v_;
  std::string pass_;  // the number of the pass whose slice is followed
  RandomSource found_;
};

}  // namespace

std::optional<RandomSource> random_source(const ModelBuilder& at, ValueId state) { return Walk(at, state).run(); }

}  // namespace tapedeck::onnx
