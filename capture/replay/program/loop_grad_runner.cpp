// Runs a node that is the gradient of a loop. It goes through the passes of the loop from the last to the first. The workspace
// has room for copies of the carried values at the start of some passes, the entries; the carried values of the passes between
// two entries are computed again from the earlier entry (engine/control/loop_checkpoints.h).
//
//     workspace   | number of the pass | frame: the bytes of all values of one pass, or of its gradient | entry 0 | entry 1 |
//     ...
//
// The gradients that a pass hands to the pass before it lie in the bytes of the node's own results.
#include <tapedeck/capture/replay/program/control_runner.h>

#include <tapedeck/capture/plan/region_frames.h>
#include <tapedeck/capture/replay/program/loop_tape_entries.h>
#include <tapedeck/capture/replay/program/region_runner.h>
#include <tapedeck/engine/control/control.h>
#include <tapedeck/engine/control/loop_checkpoints.h>
#include <tapedeck/engine/ops/control.h>

#include <algorithm>

namespace tapedeck::replay {

namespace {

bool failed(const KernelCall& call) { return call.fault->what.load(std::memory_order_relaxed) != nullptr; }

class LoopGradRunner final : public ControlRunner {
 public:
  LoopGradRunner(const Plan& plan, const Node& node)
      : attrs_(*static_cast<const LoopGradAttrs*>(plan.graph.attributes(node))),
        pass_(plan.region_plans_of(node)[0]),
        back_(plan.region_plans_of(node)[1]),
        tape_(loop_tape(plan.graph, node)),
        most_passes_(most_passes(attrs_, plan.graph.input_types(node))),
        frame_(std::max(frame_bytes(*plan.region_plans_of(node)[0]), frame_bytes(*plan.region_plans_of(node)[1]))),
        operands_(attrs_.needs.view().size()) {
    const Graph& g = plan.graph;
    const auto carried = static_cast<std::size_t>(attrs_.carried), scanned = static_cast<std::size_t>(attrs_.scanned);
    for (std::size_t j = 0; j < operands_; ++j) {
      const Type& type = g.values[g.inputs(node)[j + 1]].type;
      if (j < carried) offsets_.push_back(j == 0 ? 0 : offsets_.back() + framed(g.values[g.inputs(node)[j]].type.bytes()));
      if (is_floating(type.dtype) && (j < carried || (j >= carried + scanned && attrs_.needs.view()[j] != '0'))) {
        begins_.push_back(j >= carried && attrs_.needs.view()[j] == '2');
        ++handed_;
      }
    }
  }

  void run(const KernelCall& call) override { walk(call); }

 private:
  void walk(const KernelCall& call) {
    const std::int64_t trips = *static_cast<const std::int64_t*>(call.inputs[0].data);
    if (trips < 0 || (most_passes_ >= 0 && trips > most_passes_)) return call.fault->report(kPassesOutOfRange, trips);
    for (std::size_t k = 0; k < handed_; ++k) {
      if (trips == 0 && begins_[k])
        clear(call.outputs[k]);
      else
        copy_bytes(call.outputs[k].data, call.inputs[1 + operands_ + k].data, byte_count(call.outputs[k]));
    }
    for (std::int32_t k = static_cast<std::int32_t>(handed_); k < call.n_outputs; ++k) clear(call.outputs[k]);
    LoopTapePool pool(frame_in(call) + frame_, tape_.entries, tape_.entry_bytes);
    LoopTapeEntry first(pool);
    for (std::size_t j = 0; j < offsets_.size(); ++j)
      copy_bytes(first.data() + offsets_[j], call.inputs[1 + j].data, byte_count(call.inputs[1 + j]));
    const auto at = [&](std::int64_t k) { return attrs_.reverse ? trips - 1 - k : k; };
    walk_back(
        trips, attrs_.checkpoint, std::move(first),
        [&](const LoopTapeEntry& c, std::int64_t k) {
          LoopTapeEntry next(pool);
          if (!failed(call) && give(pass_, call, c, at(k)) && pass_.run(frame_in(call), call.fault))
            for (std::size_t j = 0; j < offsets_.size(); ++j) pass_.copy_output(j, next.data() + offsets_[j]);
          return next;
        },
        [&](const LoopTapeEntry& c, std::int64_t k) {
          if (!failed(call)) back(call, c, at(k));
        });
  }

  bool give(RegionRunner& region, const KernelCall& call, const LoopTapeEntry& c, std::int64_t i) {
    give_pass(region, call, 1, offsets_.size(), static_cast<std::size_t>(attrs_.scanned), operands_, i);
    for (std::size_t j = 0; j < offsets_.size(); ++j) region.input(1 + j, c.data() + offsets_[j]);
    return true;
  }

  // The gradients that one pass hands to the next live in the bytes of the node's results.
  void back(const KernelCall& call, const LoopTapeEntry& c, std::int64_t i) {
    give(back_, call, c, i);
    for (std::size_t k = 0; k < handed_; ++k) back_.input(1 + operands_ + k, call.outputs[k].data);
    for (std::size_t k = 1 + operands_ + handed_; k < static_cast<std::size_t>(call.n_inputs); ++k)
      back_.input(k, bytes_of(call.inputs[k]) + static_cast<std::size_t>(i) * slice_bytes(call.inputs[k]));
    if (!back_.run(frame_in(call), call.fault)) return;
    for (std::size_t k = 0; k < back_.n_outputs(); ++k) {
      const View& to = call.outputs[k];
      back_.copy_output(k, k < handed_ ? bytes_of(to) : bytes_of(to) + static_cast<std::size_t>(i) * slice_bytes(to));
    }
  }

  const LoopGradAttrs attrs_;
  RegionRunner pass_, back_;
  const LoopTape tape_;
  const std::int64_t most_passes_;
  const std::int64_t frame_;
  const std::size_t operands_;
  std::size_t handed_ = 0;
  std::vector<bool> begins_;           // by gradient that is handed on: no other gradient was added to it before this node
  std::vector<std::int64_t> offsets_;  // of carried values in an entry
};

}  // namespace

std::unique_ptr<ControlRunner> make_loop_grad_runner(const Plan& plan, const Node& node) {
  return std::make_unique<LoopGradRunner>(plan, node);
}

}  // namespace tapedeck::replay
