// Runs loops, branches and the gradients of loops from the plans of their regions. A RegionRunner is one region, lowered to
// kernel calls as an executor lowers a graph; its buffers are the operands of the node and a frame inside the node's workspace.
// The ControlSteps below run it once for each pass and carry results from one pass to the next.
#include <tapedeck/capture/replay/control_step.h>

#include <tapedeck/capture/plan/region_frames.h>
#include <tapedeck/capture/replay/program.h>
#include <tapedeck/engine/control/dispatch_regions.h>
#include <tapedeck/engine/control/loop_checkpoints.h>
#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/control.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>

namespace tapedeck::replay {

namespace {

bool failed(const KernelCall& call) { return call.fault->what.load(std::memory_order_relaxed) != nullptr; }

char* bytes_of(const View& v) { return static_cast<char*>(v.data); }
// A tensor without elements may have no address.
void copy_bytes(void* to, const void* from, std::size_t n) {
  if (n > 0) std::memcpy(to, from, n);
}
std::size_t byte_count(const View& v) { return static_cast<std::size_t>(v.numel()) * dtype_size(v.dtype); }
void clear(const View& v) {
  if (byte_count(v) > 0) std::memset(v.data, 0, byte_count(v));
}

// One region, ready to run. It reads constants where the graph keeps them.
class RegionRunner {
 public:
  explicit RegionRunner(std::shared_ptr<const Plan> plan)
      : plan_(std::move(plan)), table_(*plan_), program_(*plan_, table_), bases_(table_.bytes.size()) {
    const Graph& g = plan_->graph;
    for (std::size_t c = 0; c < g.constants.size(); ++c)
      bases_[table_.constant(static_cast<BufferId>(c))] = const_cast<void*>(g.constants[c].data.get());  // never written
    for (ValueId v : g.outputs) outputs_.push_back(window_of(*plan_, table_, v));
    staged_.resize(outputs_.size());
  }

  void input(std::size_t k, const void* data) { bases_[table_.input(static_cast<std::int32_t>(k))] = const_cast<void*>(data); }
  std::size_t n_outputs() const { return outputs_.size(); }

  // Runs in `frame`. False if a kernel reported a fault.
  bool run(char* frame, KernelFault* fault) {
    bases_[0] = frame;
    frame += framed(plan_->arena_bytes);
    for (std::size_t s = 0; s < plan_->output_slots.size(); ++s) {
      bases_[table_.output(static_cast<std::int32_t>(s))] = frame;
      frame += framed(plan_->output_slots[s].bytes());
    }
    program_.resolve(bases_);
    for (Step& step : program_.steps) {
      step.call.fault = fault;
      step.kernel(step.call);
      if (fault->what.load(std::memory_order_relaxed)) return false;
    }
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      if (!is_input(outputs_[k])) continue;
      copy_window(outputs_[k], frame);
      staged_[k] = frame;
      frame += framed(static_cast<std::int64_t>(byte_count(outputs_[k].view)));
    }
    return true;
  }

  // Copies output k, dense, to this address.
  void copy_output(std::size_t k, void* to) const noexcept {
    if (staged_[k])
      copy_bytes(to, staged_[k], byte_count(outputs_[k].view));
    else
      copy_window(outputs_[k], to);
  }

  bool truth() const noexcept {
    bool value = false;
    copy_output(0, &value);
    return value;
  }

 private:
  bool is_input(const Window& w) const { return w.buffer >= table_.input(0) && w.buffer < table_.first_state; }

  void copy_window(Window from, void* to) const noexcept {
    const std::size_t bytes = byte_count(from.view);
    if (bytes == 0) return;
    from.view.data = static_cast<char*>(bases_[from.buffer]) + from.offset;
    if (from.view.dense()) {
      std::memmove(to, from.view.data, bytes);
      return;
    }
    static const Op* const copy = find_op("copy");
    View out = from.view;
    out.data = to;
    Shape shape;
    shape.rank = out.rank;
    std::copy_n(out.sizes, out.rank, shape.sizes);
    dense_strides(shape, out.strides);
    KernelFault fault;
    KernelCall call;
    call.inputs = &from.view;
    call.outputs = &out;
    call.n_inputs = call.n_outputs = 1;
    call.fault = &fault;
    copy->kernels[static_cast<int>(DeviceType::cpu)](call);
  }

  const std::shared_ptr<const Plan> plan_;
  const BufferTable table_;
  Program program_;
  std::vector<void*> bases_;
  std::vector<Window> outputs_;
  std::vector<char*> staged_;  // by output: its copy in the frame, if it is an input
};

// The bytes from one slice along the first axis to the next.
std::size_t slice_bytes(const View& stack) {
  return stack.sizes[0] > 0 ? byte_count(stack) / static_cast<std::size_t>(stack.sizes[0]) : 0;
}

// The parts of the workspace (region_frames.h).
std::int64_t* index_in(const KernelCall& call) { return static_cast<std::int64_t*>(call.workspace); }
char* frame_in(const KernelCall& call) { return static_cast<char*>(call.workspace) + kFrameAlignment; }

// Sets the inputs of a region of a loop: index, slices, captured. The caller sets the carried inputs.
void give_pass(RegionRunner& region, const KernelCall& call, std::size_t first, std::size_t carried, std::size_t scanned,
               std::size_t operands, std::int64_t i) {
  *index_in(call) = i;
  region.input(0, index_in(call));
  for (std::size_t j = carried; j < operands; ++j) {
    const View& x = call.inputs[first + j];
    region.input(1 + j, j < carried + scanned ? bytes_of(x) + static_cast<std::size_t>(i) * slice_bytes(x) : bytes_of(x));
  }
}

class WhileOrScan : public ControlStep {
 public:
  WhileOrScan(const Plan& plan, const Node& node)
      : attrs_(*static_cast<const LoopAttrs*>(plan.graph.attributes(node))),
        is_while_(node.op == &ops::while_loop),
        body_(plan.region_plans_of(node).back()),
        operands_(static_cast<std::size_t>(node.n_inputs)) {
    if (is_while_) condition_ = std::make_unique<RegionRunner>(plan.region_plans_of(node)[0]);
  }

  void run(const KernelCall& call) override {
    const auto carried = static_cast<std::size_t>(attrs_.carried);
    const std::size_t first = is_while_ ? 1 : 0;  // of the carried results
    for (std::size_t j = 0; j < carried; ++j)
      copy_bytes(call.outputs[first + j].data, call.inputs[j].data, byte_count(call.inputs[j]));
    for (std::int32_t k = static_cast<std::int32_t>(first + carried); k < call.n_outputs; ++k)
      if (is_while_) clear(call.outputs[k]);
    const std::int64_t most = attrs_.scanned > 0 ? call.inputs[carried].sizes[0] : attrs_.trips;
    std::int64_t i = 0;
    for (; most < 0 || i < most; ++i) {
      const std::int64_t at = attrs_.reverse ? most - 1 - i : i;
      if (is_while_) {
        if (!give(*condition_, call, first, at)) return;
        if (!condition_->truth()) break;
      }
      if (!give(body_, call, first, at)) return;
      for (std::size_t k = 0; k < body_.n_outputs(); ++k) {
        const View& to = call.outputs[first + k];
        body_.copy_output(k, k < carried ? bytes_of(to) : bytes_of(to) + static_cast<std::size_t>(at) * slice_bytes(to));
      }
    }
    if (is_while_) *static_cast<std::int64_t*>(call.outputs[0].data) = i;
  }

 private:
  // The carried values live in the bytes of the node's results.
  bool give(RegionRunner& region, const KernelCall& call, std::size_t first, std::int64_t at) {
    const auto carried = static_cast<std::size_t>(attrs_.carried);
    give_pass(region, call, 0, carried, static_cast<std::size_t>(attrs_.scanned), operands_, at);
    for (std::size_t j = 0; j < carried; ++j) region.input(1 + j, call.outputs[first + j].data);
    return region.run(frame_in(call), call.fault);
  }

  const LoopAttrs attrs_;
  const bool is_while_;
  std::unique_ptr<RegionRunner> condition_;
  RegionRunner body_;
  const std::size_t operands_;
};

class Branch : public ControlStep {
 public:
  Branch(const Plan& plan, const Node& node)
      : branches_{RegionRunner(plan.region_plans_of(node)[0]), RegionRunner(plan.region_plans_of(node)[1])} {}

  void run(const KernelCall& call) override {
    RegionRunner& region = branches_[*static_cast<const bool*>(call.inputs[0].data) ? 0 : 1];
    for (std::int32_t j = 1; j < call.n_inputs; ++j) region.input(static_cast<std::size_t>(j - 1), call.inputs[j].data);
    if (!region.run(frame_in(call), call.fault)) return;
    for (std::int32_t k = 0; k < call.n_outputs; ++k) region.copy_output(static_cast<std::size_t>(k), call.outputs[k].data);
  }

 private:
  RegionRunner branches_[2];
};

// The entries of a loop tape. Readers of an entry are counted; an entry without readers is free.
class TapePool {
 public:
  TapePool(char* base, std::int64_t entries, std::int64_t entry_bytes)
      : base_(base), entry_bytes_(entry_bytes), refs_(static_cast<std::size_t>(std::max<std::int64_t>(entries, 0))) {}

  std::int32_t take() {
    const auto free = std::find(refs_.begin(), refs_.end(), 0);
    const auto k = static_cast<std::int32_t>(free - refs_.begin());
    if (free == refs_.end()) {  // the number of passes was not known before the run
      refs_.push_back(0);
      grown_.emplace_back(Allocator::host(), std::max<std::int64_t>(entry_bytes_, 1));
      first_grown_ = std::min(first_grown_, k);
    }
    refs_[k] = 1;
    return k;
  }
  void retain(std::int32_t k) { ++refs_[k]; }
  void release(std::int32_t k) { --refs_[k]; }
  char* at(std::int32_t k) const {
    return k < first_grown_ ? base_ + k * entry_bytes_ : static_cast<char*>(grown_[k - first_grown_].data());
  }

 private:
  char* base_;
  std::int64_t entry_bytes_;
  std::vector<std::int32_t> refs_;
  std::vector<Buffer> grown_;
  std::int32_t first_grown_ = std::numeric_limits<std::int32_t>::max();
};

class TapeEntry {
 public:
  TapeEntry() = default;
  explicit TapeEntry(TapePool& pool) : pool_(&pool), index_(pool.take()) {}
  TapeEntry(const TapeEntry& o) : pool_(o.pool_), index_(o.index_) {
    if (pool_) pool_->retain(index_);
  }
  TapeEntry(TapeEntry&& o) noexcept : pool_(std::exchange(o.pool_, nullptr)), index_(o.index_) {}
  TapeEntry& operator=(TapeEntry o) noexcept {
    std::swap(pool_, o.pool_);
    std::swap(index_, o.index_);
    return *this;
  }
  ~TapeEntry() {
    if (pool_) pool_->release(index_);
  }
  char* data() const { return pool_->at(index_); }

 private:
  TapePool* pool_ = nullptr;
  std::int32_t index_ = 0;
};

class LoopGrad : public ControlStep {
 public:
  LoopGrad(const Plan& plan, const Node& node)
      : attrs_(*static_cast<const LoopGradAttrs*>(plan.graph.attributes(node))),
        pass_(plan.region_plans_of(node)[0]),
        back_(plan.region_plans_of(node)[1]),
        tape_(loop_tape(plan.graph, node)),
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
    for (std::size_t k = 0; k < handed_; ++k) {
      if (trips == 0 && begins_[k])
        clear(call.outputs[k]);
      else
        copy_bytes(call.outputs[k].data, call.inputs[1 + operands_ + k].data, byte_count(call.outputs[k]));
    }
    for (std::int32_t k = static_cast<std::int32_t>(handed_); k < call.n_outputs; ++k) clear(call.outputs[k]);
    TapePool pool(frame_in(call) + frame_, tape_.entries, tape_.entry_bytes);
    TapeEntry first(pool);
    for (std::size_t j = 0; j < offsets_.size(); ++j)
      copy_bytes(first.data() + offsets_[j], call.inputs[1 + j].data, byte_count(call.inputs[1 + j]));
    const auto at = [&](std::int64_t k) { return attrs_.reverse ? trips - 1 - k : k; };
    walk_back(
        trips, attrs_.checkpoint, std::move(first),
        [&](const TapeEntry& c, std::int64_t k) {
          TapeEntry next(pool);
          if (!failed(call) && give(pass_, call, c, at(k)) && pass_.run(frame_in(call), call.fault))
            for (std::size_t j = 0; j < offsets_.size(); ++j) pass_.copy_output(j, next.data() + offsets_[j]);
          return next;
        },
        [&](const TapeEntry& c, std::int64_t k) {
          if (!failed(call)) back(call, c, at(k));
        });
  }

  bool give(RegionRunner& region, const KernelCall& call, const TapeEntry& c, std::int64_t i) {
    give_pass(region, call, 1, offsets_.size(), static_cast<std::size_t>(attrs_.scanned), operands_, i);
    for (std::size_t j = 0; j < offsets_.size(); ++j) region.input(1 + j, c.data() + offsets_[j]);
    return true;
  }

  // The gradients that one pass hands to the next live in the bytes of the node's results.
  void back(const KernelCall& call, const TapeEntry& c, std::int64_t i) {
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
  const std::int64_t frame_;
  const std::size_t operands_;
  std::size_t handed_ = 0;
  std::vector<bool> begins_;           // by gradient that is handed on: no other gradient was added to it before this node
  std::vector<std::int64_t> offsets_;  // of carried values in an entry
};

// Runs by the interpreter, on copies.
class Interpreted : public ControlStep {
 public:
  Interpreted(const Graph& g, const Node& node) : op_(*node.op), attrs_(g.attributes(node)), types_(g.output_types(node)) {
    for (const Region& r : g.regions_of(node)) regions_.push_back(r);
  }

  void run(const KernelCall& call) override {
    const Unrecorded unrecorded;
    std::vector<Tensor> inputs;
    for (std::int32_t j = 0; j < call.n_inputs; ++j) {
      Type type{call.inputs[j].dtype, {}};
      for (int d = 0; d < call.inputs[j].rank; ++d) type.shape.sizes[type.shape.rank++] = call.inputs[j].sizes[d];
      inputs.push_back(from_bytes(type, call.inputs[j].data));
    }
    const std::vector<Tensor> results = op_.run(regions_, inputs, attrs_, types_, {});
    for (std::size_t k = 0; k < results.size(); ++k)
      results[k].copy_to(call.outputs[k].data, byte_count(call.outputs[k]), dtype_size(results[k].dtype()));
  }

 private:
  const Op& op_;
  const void* attrs_;
  std::vector<Type> types_;
  std::vector<Region> regions_;
};

}  // namespace

std::unique_ptr<ControlStep> make_control_step(const Plan& plan, const Node& node) {
  if (node.op == &ops::while_loop || node.op == &ops::scan) return std::make_unique<WhileOrScan>(plan, node);
  if (node.op == &ops::cond) return std::make_unique<Branch>(plan, node);
  if (node.op == &ops::loop_grad) return std::make_unique<LoopGrad>(plan, node);
  return std::make_unique<Interpreted>(plan.graph, node);
}

void run_control_step(const KernelCall& call) { static_cast<ControlStep*>(const_cast<void*>(call.attrs))->run(call); }

}  // namespace tapedeck::replay
