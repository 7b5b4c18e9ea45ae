#include <tapedeck/capture/planner/scans/rerun_scan.h>

#include <tapedeck/capture/cost/node_costs.h>
#include <tapedeck/capture/plan/region_frames.h>
#include <tapedeck/engine/ir/extract.h>

#include <algorithm>
#include <utility>

namespace tapedeck {

namespace {

using Given = RerunScan::Given;

constexpr std::size_t kMostStacks = 32;  // beyond, stacks are not given up one by one

ValueId add_input(const Graph& from, ValueId v, TakenNames* names, Graph* to) {
  const Name own = from.values[v].name;
  const Type type = from.values[v].type;  // `from` may be `to`
  return to->add_input(names->take(own) ? own : names->fresh(own.empty() ? "outer" : own.str()), type);
}

ValueId inside_of(const std::vector<Given>& all, ValueId outside) {
  for (const Given& g : all)
    if (g.outside == outside) return g.inside;
  return kNone;
}

// By result of the forward: whether the graph reads or returns it anywhere but as a scanned operand of the backward.
std::vector<char> find_read_elsewhere(const Graph& g, const ScanPair& pair) {
  const Node &forward = g.nodes[pair.forward], &backward = g.nodes[pair.backward];
  std::vector<char> read(static_cast<std::size_t>(forward.n_outputs), 0);
  const auto note = [&](ValueId v) {
    if (v >= forward.first_output && v < forward.first_output + forward.n_outputs) read[v - forward.first_output] = 1;
  };
  for (NodeId n = pair.forward + 1; n < g.node_count(); ++n) {
    const auto operands = g.inputs(g.nodes[n]);
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (&g.nodes[n] != &backward || i < pair.back.carried || i >= pair.back.carried + pair.back.scanned) note(operands[i]);
    for (ValueId v : g.after(g.nodes[n])) note(v);
  }
  for (ValueId v : g.outputs) note(v);
  for (const Update& u : g.updates) note(u.value);
  return read;
}

// Whether a stack may get one more axis, so that its blocks are counted.
bool has_room_for_blocks(const Graph& g, const ScanPair& pair) {
  const auto fits = [&](ValueId v) { return g.values[v].type.shape.rank < kMaxRank; };
  const auto all_fit = [&](NodeId n) {
    const auto operands = g.inputs(g.nodes[n]);
    bool fit = std::all_of(operands.begin(), operands.end(), fits);
    for (std::int32_t k = 0; k < g.nodes[n].n_outputs; ++k) fit = fit && fits(g.nodes[n].first_output + k);
    return fit;
  };
  return all_fit(pair.forward) && all_fit(pair.backward);
}

// Whether a stacked result of the pair is an output of the graph or the new value of a state.
bool leaves_with_a_stack(const Graph& g, const ScanPair& pair) {
  const auto is_stack = [&](ValueId v) {
    const auto stands_in = [&](NodeId n, std::size_t carried) {
      const Node& node = g.nodes[n];
      return v >= node.first_output + static_cast<ValueId>(carried) && v < node.first_output + node.n_outputs;
    };
    return stands_in(pair.forward, pair.ahead.carried) || stands_in(pair.backward, pair.back.carried);
  };
  return std::any_of(g.outputs.begin(), g.outputs.end(), is_stack) ||
         std::any_of(g.updates.begin(), g.updates.end(), [&](const Update& u) { return is_stack(u.value); });
}

}  // namespace

RerunScan::RerunScan(const Graph& g, ScanPair pair) : pair_(std::move(pair)), read_elsewhere_(find_read_elsewhere(g, pair_)) {
  const Graph &pass = *g.regions_of(g.nodes[pair_.forward])[0], &back = *g.regions_of(g.nodes[pair_.backward])[0];
  whole_.name = pass.name;
  TakenNames names;
  Splice ahead(pass, whole_, names), behind(back, whole_, names);
  add_inputs(g, pass, back, &ahead, &behind, &names);
  find_loop_grad_form(g, &names);
  for (NodeId n = 0; n < pass.node_count(); ++n) ahead.copy(n);
  first_back_ = whole_.node_count();
  for (ValueId v : pass.outputs) made_.push_back(ahead.at(v));
  for (std::size_t q = 0; q < pair_.back.scanned; ++q)
    if (pair_.stacks[q] != kNone)
      behind.bind(static_cast<ValueId>(1 + pair_.back.carried + q), made_[static_cast<std::size_t>(pair_.stacks[q])]);
  for (NodeId n = 0; n < back.node_count(); ++n) behind.copy(n);
  for (ValueId v : back.outputs) results_.push_back(behind.at(v));
  node_us_ = node_costs(whole_);
  std::vector<ValueId> all = made_;
  all.insert(all.end(), results_.begin(), results_.end());
  may_run_in_blocks_ = !carried_.empty() && !handed_.empty() && !needed_values(whole_, {}, all)[index()] &&
                       !leaves_with_a_stack(g, pair_) && has_room_for_blocks(g, pair_);
}

void RerunScan::add_inputs(const Graph& g, const Graph& pass, const Graph& back, Splice* ahead, Splice* behind,
                           TakenNames* names) {
  const auto operands = g.inputs(g.nodes[pair_.forward]), back_operands = g.inputs(g.nodes[pair_.backward]);
  const LoopLayout &a = pair_.ahead, &b = pair_.back;
  const auto add = [&](const Graph& from, ValueId v, ValueId outside, std::vector<Given>* list, Splice* to) {
    list->push_back({outside, add_input(from, v, names, &whole_)});
    to->bind(v, list->back().inside);
  };
  const auto share = [&](ValueId v, ValueId outside, std::vector<Given>* list) {
    if (const ValueId known = inside_of(*list, outside); known != kNone)
      behind->bind(v, known);
    else
      add(back, v, outside, list, behind);
  };
  const ValueId index = add_input(pass, 0, names, &whole_);
  ahead->bind(0, index);
  behind->bind(0, index);
  for (std::size_t j = 0; j < a.operands(); ++j)
    add(pass, static_cast<ValueId>(j + 1), operands[j],
        j < a.carried               ? &carried_
        : j < a.carried + a.scanned ? &slices_
                                    : &captured_,
        ahead);
  for (std::size_t j = 0; j < b.operands(); ++j) {
    const auto v = static_cast<ValueId>(j + 1);
    if (j < b.carried)
      add(back, v, back_operands[j], &handed_, behind);
    else if (j >= b.carried + b.scanned)
      share(v, back_operands[j], &captured_);
    else if (pair_.stacks[j - b.carried] == kNone)
      share(v, back_operands[j], &slices_);
  }
}

namespace {

// The first operand of this type that has no mark; kNone if there is none.
std::int32_t unmarked(const Graph& g, const std::vector<Given>& operands, const std::vector<std::int32_t>& marks,
                      const Type& type) {
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (marks[i] == kNone && g.values[operands[i].outside].type == type) return static_cast<std::int32_t>(i);
  return kNone;
}

void append_marked(const std::vector<std::int32_t>& marks, std::vector<std::size_t>* order) {
  for (const std::int32_t mark : marks)
    if (mark != kNone) order->push_back(static_cast<std::size_t>(mark));
}

std::string as_needs(const std::vector<std::int32_t>& marks) {
  std::string text;
  for (const std::int32_t mark : marks) text += mark == kNone ? '0' : '1';
  return text;
}

}  // namespace

// A loop_grad carries one gradient for each floating carried value of the loop, and one for each captured operand that is
// marked. It stacks one for each scanned operand that is marked. The type of a gradient is that of its operand. The values that
// the backward carries and stacks are given such parts by their types; a value without an operand of its type becomes a
// captured operand itself, which no pass reads.
void RerunScan::find_loop_grad_form(const Graph& g, TakenNames* names) {
  const Node& backward = g.nodes[pair_.backward];
  std::vector<char> placed(handed_.size(), 0);
  const auto type_of = [&](const Given& given) { return g.values[given.outside].type; };
  std::string needs;
  for (const Given& c : carried_) {
    needs += is_floating(type_of(c).dtype) ? '1' : '0';
    if (!is_floating(type_of(c).dtype)) continue;
    std::size_t t = 0;
    while (t < handed_.size() && (placed[t] || type_of(handed_[t]) != type_of(c))) ++t;
    if (t == handed_.size()) return;
    placed[t] = 1;
    loop_grad_.handed.push_back(t);
  }
  std::vector<std::int32_t> of_captured(captured_.size(), kNone), of_slice(slices_.size(), kNone);
  for (std::size_t t = 0; t < handed_.size(); ++t) {
    if (placed[t]) continue;
    if (!is_floating(type_of(handed_[t]).dtype)) return;
    std::int32_t at = unmarked(g, captured_, of_captured, type_of(handed_[t]));
    if (at == kNone) {
      at = static_cast<std::int32_t>(captured_.size());
      captured_.push_back({handed_[t].outside, add_input(whole_, handed_[t].inside, names, &whole_)});
      of_captured.push_back(kNone);
    }
    of_captured[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(t);
  }
  for (std::size_t k = pair_.back.carried; k < static_cast<std::size_t>(backward.n_outputs); ++k) {
    const Type type = g.values[backward.first_output + static_cast<ValueId>(k)].type;
    const std::int32_t at = is_floating(type.dtype) ? unmarked(g, slices_, of_slice, type) : kNone;
    if (at == kNone) return;
    of_slice[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(k);
  }
  append_marked(of_captured, &loop_grad_.handed);
  append_marked(of_slice, &loop_grad_.sliced);
  loop_grad_.needs = needs + as_needs(of_slice) + as_needs(of_captured);
  loop_grad_.possible = true;
}

namespace {

// Microseconds of the first `n_nodes` nodes that `needed` values, which are not given, ask for.
double cost_of(const Graph& g, NodeId n_nodes, const std::vector<double>& us, const std::vector<bool>& needed,
               std::span<const ValueId> given) {
  std::vector<char> is_given(g.values.size(), 0);
  for (ValueId v : given) is_given[v] = 1;
  double sum = 0;
  for (NodeId n = 0; n < n_nodes; ++n) {
    const Node& node = g.nodes[n];
    bool runs = false;
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) runs |= needed[v] && !is_given[v];
    if (runs) sum += us[n];
  }
  return sum;
}

}  // namespace

std::int64_t RerunScan::entry_bytes() const {
  std::int64_t bytes = 0;
  for (const Given& c : carried_) bytes += framed(whole_.values[c.inside].type.bytes());
  return bytes;
}

double RerunScan::advance_us() const {
  const std::span<const ValueId> next(made_.data(), pair_.ahead.carried);
  return cost_of(whole_, first_back_, node_us_, needed_values(whole_, {}, next), {});
}

double RerunScan::pass_us() const { return cost_of(whole_, first_back_, node_us_, needed_values(whole_, {}, made_), {}); }

KeptStacks RerunScan::with(std::vector<std::int32_t> stacks) const {
  KeptStacks kept;
  kept.stacks = std::move(stacks);
  std::vector<ValueId> given;
  for (const std::int32_t k : kept.stacks) {
    given.push_back(made_[static_cast<std::size_t>(k)]);
    kept.bytes += passes() * whole_.values[given.back()].type.bytes();
  }
  const std::vector<bool> needed = needed_values(whole_, given, results_);
  kept.again_us = cost_of(whole_, first_back_, node_us_, needed, given);
  for (std::size_t j = 0; j < carried_.size(); ++j) {
    const ValueId v = carried_[j].inside;
    if (!needed[v] || std::find(given.begin(), given.end(), v) != given.end()) continue;
    kept.carried.push_back(j);
    kept.bytes += passes() * whole_.values[v].type.bytes();
  }
  return kept;
}

KeptStacks RerunScan::least() const { return with({}); }

std::vector<KeptStacks> RerunScan::ladder() const {
  std::vector<std::int32_t> all;
  for (const std::int32_t k : pair_.stacks)
    if (k != kNone && std::find(all.begin(), all.end(), k) == all.end()) all.push_back(k);
  std::vector<KeptStacks> found{with(all)};
  while (found.back().stacks.size() > 1 && all.size() <= kMostStacks) {
    const KeptStacks& last = found.back();
    KeptStacks best;
    double best_price = 0;
    for (const std::int32_t k : last.stacks) {
      std::vector<std::int32_t> fewer = last.stacks;
      std::erase(fewer, k);
      KeptStacks next = with(std::move(fewer));
      if (next.bytes >= last.bytes) continue;
      const double price = (next.again_us - last.again_us) / static_cast<double>(last.bytes - next.bytes);
      if (!best.stacks.empty() && price >= best_price) continue;
      best_price = price;
      best = std::move(next);
    }
    if (best.stacks.empty()) break;
    found.push_back(std::move(best));
  }
  if (KeptStacks last = least(); last.bytes < found.back().bytes) found.push_back(std::move(last));
  return found;
}

}  // namespace tapedeck
