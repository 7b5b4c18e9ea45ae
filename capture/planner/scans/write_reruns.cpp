// Writes pairs of scans anew (rerun_scan.h): the forward with fewer stacks, and the backward that computes them again.
#include <tapedeck/capture/planner/scans/rerun_scan.h>
#include <tapedeck/capture/planner/scans/scan_blocks.h>
#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/engine/ir/extract.h>
#include <tapedeck/engine/ops/movement.h>

#include <algorithm>
#include <map>
#include <memory>

namespace tapedeck {

namespace {

using Given = RerunScan::Given;
using Values = std::vector<ValueId>;

Region region_of(const Graph& whole, const Values& inputs, const Values& outputs) {
  return std::make_shared<const Graph>(extract(whole, inputs, outputs));
}

class RerunWriter {
 public:
  explicit RerunWriter(const Graph& graph) : from_(graph), to_(graph), names_(graph) {}

  Graph write(std::span<const Rerun> reruns) {
    std::map<NodeId, const Rerun*> forwards, backwards;
    for (const Rerun& r : reruns) forwards[r.scan->pair().forward] = backwards[r.scan->pair().backward] = &r;
    for (NodeId n = 0; n < from_.node_count(); ++n) {
      if (const auto f = forwards.find(n); f != forwards.end())
        f->second->block > 0 ? append_forward_in_blocks(*f->second) : append_forward(*f->second);
      else if (const auto b = backwards.find(n); b == backwards.end())
        to_.copy(n);
      else if (b->second->block > 0)
        append_backward_in_blocks(*b->second);
      else if (b->second->kept)
        append_scan(*b->second);
      else
        append_loop_grad(*b->second);
    }
    return to_.finish();
  }

 private:
  Values outside(const std::vector<Given>& all) const {
    Values values;
    for (const Given& given : all) values.push_back(to_.at(given.outside));
    return values;
  }

  // Appends a node in place of node `old`, with its notes and order edges.
  ValueId append(const Op& op, const Node& old, const Values& operands, const void* attrs, const std::vector<Type>& types,
                 std::span<const Region> regions) {
    Values after;
    for (ValueId v : from_.after(old))
      if (to_.at(v) != kNone) after.push_back(to_.at(v));
    Graph& to = to_.graph();
    return to.nodes[to.add_node(op, operands, attrs, types, old.origin, after, regions)].first_output;
  }

  // Old readers of result `k` of node `old` read `v`, which takes its name.
  void hand_over(const Node& old, std::size_t k, ValueId v) {
    const ValueId was = old.first_output + static_cast<ValueId>(k);
    to_.graph().values[static_cast<std::size_t>(v)].name = from_.values[was].name;
    to_.replace(was, v);
  }

  bool keeps(const Rerun& r, std::int32_t k) const {
    if (r.scan->is_read_elsewhere(k) || static_cast<std::size_t>(k) < r.scan->pair().ahead.carried) return true;
    return r.kept && std::find(r.kept->stacks.begin(), r.kept->stacks.end(), k) != r.kept->stacks.end();
  }

  void append_forward(const Rerun& r) {
    const RerunScan& scan = *r.scan;
    const Node& old = from_.nodes[scan.pair().forward];
    LoopAttrs attrs = *static_cast<const LoopAttrs*>(from_.attributes(old));
    const auto first_residual = static_cast<std::size_t>(old.n_outputs - attrs.residuals);
    attrs.residuals = 0;
    std::vector<std::size_t> kept;
    std::vector<Type> types;
    Values outputs;
    for (std::size_t k = 0; k < static_cast<std::size_t>(old.n_outputs); ++k) {
      if (!keeps(r, static_cast<std::int32_t>(k))) continue;
      kept.push_back(k);
      types.push_back(from_.values[old.first_output + static_cast<ValueId>(k)].type);
      outputs.push_back(scan.made()[k]);
      if (k >= first_residual) ++attrs.residuals;
    }
    const std::vector<std::size_t> further = r.kept ? r.kept->carried : std::vector<std::size_t>{};
    for (std::size_t j : further) {
      outputs.push_back(scan.carried()[j].inside);
      types.push_back(stack_type(scan.passes(), scan.whole().values[outputs.back()].type));
      ++attrs.residuals;
    }
    const Region pass[] = {region_of(scan.whole(), own_inputs(scan), outputs)};
    Values operands;
    for (ValueId v : from_.inputs(old)) operands.push_back(to_.at(v));
    const ValueId first = append(ops::scan, old, operands, &attrs, types, pass);
    for (std::size_t i = 0; i < kept.size(); ++i) hand_over(old, kept[i], first + static_cast<ValueId>(i));
    Values& stacks = carried_stacks_[&scan];
    for (std::size_t i = 0; i < further.size(); ++i) {
      stacks.push_back(first + static_cast<ValueId>(kept.size() + i));
      to_.graph().values[static_cast<std::size_t>(stacks.back())].name = names_.fresh("carried");
    }
  }

  // The inputs that one pass of the forward has by itself.
  Values own_inputs(const RerunScan& scan) const {
    const LoopLayout& a = scan.pair().ahead;
    Values inputs{scan.index()};
    for (const Given& given : scan.carried()) inputs.push_back(given.inside);
    for (std::size_t i = 0; i < a.scanned; ++i) inputs.push_back(scan.slices()[i].inside);
    for (std::size_t i = 0; i < a.captured; ++i) inputs.push_back(scan.captured()[i].inside);
    return inputs;
  }

  // A scan whose passes compute again. It scans the stacks that are kept, and then the operands that its passes read.
  void append_scan(const Rerun& r) {
    const RerunScan& scan = *r.scan;
    const Node &old = from_.nodes[scan.pair().backward], &forward = from_.nodes[scan.pair().forward];
    Values inputs{scan.index()}, operands = outside(scan.handed()), stop;
    for (const Given& given : scan.handed()) inputs.push_back(given.inside);
    for (std::int32_t k : r.kept->stacks) {
      inputs.push_back(scan.made()[static_cast<std::size_t>(k)]);
      operands.push_back(to_.at(forward.first_output + k));
    }
    for (std::size_t i = 0; i < r.kept->carried.size(); ++i) {
      inputs.push_back(scan.carried()[r.kept->carried[i]].inside);
      operands.push_back(carried_stacks_[&scan][i]);
    }
    const std::vector<bool> needed = needed_values(scan.whole(), inputs, scan.results());
    const auto add_needed = [&](const std::vector<Given>& all) {
      for (const Given& given : all) {
        if (!needed[given.inside]) continue;
        inputs.push_back(given.inside);
        operands.push_back(to_.at(given.outside));
      }
    };
    add_needed(scan.slices());
    LoopAttrs attrs = *static_cast<const LoopAttrs*>(from_.attributes(old));
    attrs.scanned = static_cast<std::int64_t>(operands.size()) - attrs.carried;
    attrs.trips = scan.passes();
    add_needed(scan.captured());
    const Region back[] = {region_of(scan.whole(), inputs, scan.results())};
    const ValueId first = append(ops::scan, old, operands, &attrs, from_.output_types(old), back);
    for (std::size_t k = 0; k < static_cast<std::size_t>(old.n_outputs); ++k)
      hand_over(old, k, first + static_cast<ValueId>(k));
  }

  ValueId append_passes(const Node& old, std::int64_t passes) {
    FullAttrs attrs;
    attrs.dtype = DType::i64;
    attrs.value = static_cast<double>(passes);
    const ValueId made = append(ops::full, old, {}, &attrs, {Type{DType::i64, {}}}, {});
    to_.graph().values[static_cast<std::size_t>(made)].name = names_.fresh("passes");
    return made;
  }

  void append_loop_grad(const Rerun& r) {
    const RerunScan& scan = *r.scan;
    const Node& old = from_.nodes[scan.pair().backward];
    const RerunScan::LoopGradForm& form = scan.loop_grad();
    LoopGradAttrs attrs;
    attrs.carried = static_cast<std::int64_t>(scan.carried().size());
    attrs.scanned = static_cast<std::int64_t>(scan.slices().size());
    attrs.trips = scan.passes();
    attrs.reverse = static_cast<const LoopAttrs*>(from_.attributes(from_.nodes[scan.pair().forward]))->reverse;
    attrs.checkpoint = r.checkpoint;
    attrs.needs = Name(form.needs);

    Values inputs{scan.index()}, operands{append_passes(old, scan.passes())};
    for (const auto* list : {&scan.carried(), &scan.slices(), &scan.captured()})
      for (const Given& given : *list) {
        inputs.push_back(given.inside);
        operands.push_back(to_.at(given.outside));
      }
    Values next(scan.made().begin(), scan.made().begin() + attrs.carried), results;
    const Region pass = region_of(scan.whole(), inputs, next);
    std::vector<Type> types;
    std::vector<std::size_t> order = form.handed;
    for (std::size_t t : form.handed) {
      inputs.push_back(scan.handed()[t].inside);
      operands.push_back(to_.at(scan.handed()[t].outside));
    }
    order.insert(order.end(), form.sliced.begin(), form.sliced.end());
    for (std::size_t k : order) {
      results.push_back(scan.results()[k]);
      types.push_back(from_.values[old.first_output + static_cast<ValueId>(k)].type);
    }
    const Region regions[] = {pass, region_of(scan.whole(), inputs, results)};
    const ValueId first = append(ops::loop_grad, old, operands, &attrs, types, regions);
    for (std::size_t i = 0; i < order.size(); ++i) hand_over(old, order[i], first + static_cast<ValueId>(i));
  }

  // The same elements under another shape, in place of node `old`.
  ValueId append_reshape(const Node& old, ValueId v, const Type& type) {
    ShapeAttrs attrs;
    for (const std::int64_t size : type.shape) attrs.shape.push_back(size);
    const NodeId node = to_.graph().add_node(ops::reshape, {&v, 1}, &attrs, {&type, 1}, old.origin);
    const ValueId made = to_.graph().nodes[node].first_output;
    to_.graph().values[static_cast<std::size_t>(made)].name = names_.fresh("blocks");
    return made;
  }

  // The operands of a scan over blocks, after the carried ones and the starts.
  void append_block_operands(const Rerun& r, const Node& old, const BlockBody& body, Values* operands) {
    for (const std::size_t i : body.slices) {
      const Given& given = r.scan->slices()[i];
      operands->push_back(append_reshape(old, to_.at(given.outside), in_blocks(r, r.scan->whole().values[given.inside].type)));
    }
    for (const std::size_t i : body.captured) operands->push_back(to_.at(r.scan->captured()[i].outside));
  }

  // The type of a stack of all passes as a stack of blocks.
  static Type in_blocks(const Rerun& r, const Type& slice) {
    return stack_type(r.scan->passes() / r.block, stack_type(r.block, slice));
  }

  bool is_reversed(NodeId n) const { return static_cast<const LoopAttrs*>(from_.attributes(from_.nodes[n]))->reverse; }

  // Appends a scan over blocks in place of node `old`. Its first results are those of `old` with the numbers `kept`, of which
  // the first `carried` are carried; the others are stacks of blocks. Returns the first of its further results.
  ValueId append_scan_over_blocks(const Rerun& r, const Node& old, const BlockBody& body, const Values& operands,
                                  std::size_t carried, std::size_t scanned, const std::vector<std::size_t>& kept) {
    LoopAttrs attrs = *static_cast<const LoopAttrs*>(from_.attributes(old));
    attrs.scanned = static_cast<std::int64_t>(scanned);
    attrs.trips = r.scan->passes() / r.block;
    attrs.residuals = 0;
    std::vector<Type> types;
    for (std::size_t k = 0; k < body.body->outputs.size(); ++k) {
      const Type& type = body.body->values[body.body->outputs[k]].type;
      types.push_back(k < carried ? type : stack_type(attrs.trips, type));
    }
    const Region regions[] = {body.body};
    const ValueId first = append(ops::scan, old, operands, &attrs, types, regions);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      ValueId v = first + static_cast<ValueId>(i);
      if (i >= carried) v = append_reshape(old, v, from_.values[old.first_output + static_cast<ValueId>(kept[i])].type);
      hand_over(old, kept[i], v);
    }
    return first + static_cast<ValueId>(kept.size());
  }

  void append_forward_in_blocks(const Rerun& r) {
    const RerunScan& scan = *r.scan;
    const Node& old = from_.nodes[scan.pair().forward];
    std::vector<std::size_t> kept;
    std::vector<std::int32_t> stacked;
    for (std::int32_t k = 0; k < old.n_outputs; ++k) {
      const bool is_carried = static_cast<std::size_t>(k) < scan.pair().ahead.carried;
      if (!is_carried && !scan.is_read_elsewhere(k)) continue;
      kept.push_back(static_cast<std::size_t>(k));
      if (!is_carried) stacked.push_back(k);
    }
    const BlockBody body = forward_block(scan, r.block, stacked, is_reversed(scan.pair().forward));
    Values operands = outside(scan.carried());
    append_block_operands(r, old, body, &operands);
    const ValueId starts = append_scan_over_blocks(r, old, body, operands, scan.carried().size(), body.slices.size(), kept);
    for (std::size_t j = 0; j < scan.carried().size(); ++j) {
      carried_stacks_[&scan].push_back(starts + static_cast<ValueId>(j));
      to_.graph().values[static_cast<std::size_t>(carried_stacks_[&scan].back())].name = names_.fresh("starts");
    }
  }

  void append_backward_in_blocks(const Rerun& r) {
    const RerunScan& scan = *r.scan;
    const Node& old = from_.nodes[scan.pair().backward];
    const BlockBody body =
        backward_block(scan, r.block, *r.kept, is_reversed(scan.pair().forward), is_reversed(scan.pair().backward));
    Values operands = outside(scan.handed());
    const Values& starts = carried_stacks_[&scan];
    operands.insert(operands.end(), starts.begin(), starts.end());
    append_block_operands(r, old, body, &operands);
    std::vector<std::size_t> all;
    for (std::size_t k = 0; k < static_cast<std::size_t>(old.n_outputs); ++k) all.push_back(k);
    append_scan_over_blocks(r, old, body, operands, scan.handed().size(), starts.size() + body.slices.size(), all);
  }

  const Graph& from_;
  Rewriter to_;
  TakenNames names_;
  std::map<const RerunScan*, Values> carried_stacks_;  // in the new graph
};

}  // namespace

Graph with_reruns(const Graph& graph, std::span<const Rerun> reruns) { return RerunWriter(graph).write(reruns); }

}  // namespace tapedeck
