#include <tapedeck/tests/capture/replay/device/fake_runtime.h>

#include <tapedeck/capture/replay/memory/view_copies.h>
#include <tapedeck/engine/eager/cuda_device.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/cuda/device_fault.h>
#include <tapedeck/kernels/cuda/fault_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tapedeck::test {

namespace {

constexpr const char* kNotAllowed = "operation not permitted when stream is capturing";
constexpr const char* kInvalid = "invalid argument";
constexpr const char* kLost = "an illegal memory access was encountered";

std::vector<Type> types_of(const View* views, std::int32_t count) {
  std::vector<Type> types;
  for (std::int32_t k = 0; k < count; ++k) {
    Type type{views[k].dtype, {}};
    for (int d = 0; d < views[k].rank; ++d) type.shape.sizes[type.shape.rank++] = views[k].sizes[d];
    types.push_back(type);
  }
  return types;
}

// A call with views and attributes of its own, as the arguments of a real launch are copied. `op`: null if the attributes are
// not those of an op.
struct OwnCall {
  OwnCall(const KernelCall& given, const Op* op) : call(given) {
    views.assign(given.inputs, given.inputs + given.n_inputs);
    views.insert(views.end(), given.outputs, given.outputs + given.n_outputs);
    if (!given.attrs || !op || !op->attrs) return;
    attrs.resize((op->attrs->size + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
    std::memcpy(attrs.data(), given.attrs, op->attrs->size);
  }
  KernelCall call;
  std::vector<View> views;
  std::vector<std::max_align_t> attrs;
};

// Runs a kernel of the CPU. It reports texts; the numbers of a device take their place.
void run_kernel(Kernel kernel, const OwnCall& own) {
  KernelFault found;
  KernelCall call = own.call;
  call.inputs = own.views.data();
  call.outputs = own.views.data() + call.n_inputs;
  if (!own.attrs.empty()) call.attrs = own.attrs.data();
  call.stream = nullptr;
  call.fault = &found;
  kernel(call);
  const char* text = found.what.load();
  if (!text) return;
  using kernels::emulated::Fault;
  for (const Fault fault : {Fault::index_out_of_range, Fault::label_out_of_range, Fault::division_by_zero}) {
    KernelFault numbered;
    kernels::emulated::report_fault(&numbered, fault, found.value);
    if (std::strcmp(kernels::cuda::fault_text(numbered), text) == 0)
      return kernels::emulated::report_fault(own.call.fault, fault, found.value);
  }
  own.call.fault->report(text, found.value);
}

// ---- groups of updates ----

struct Grouped {
  std::string_view op;
  std::int32_t outputs;  // of one call
};
constexpr Grouped kGrouped[] = {{"sgd", 1}, {"sgd_momentum", 2}, {"adamw", 3}, {"adam", 3}, {"ema", 1}};

// The calls of a group, in order, by the kernel of the CPU.
template <std::size_t kOp>
void run_in_order(const KernelCall& group) {
  const Kernel kernel = find_op(kGrouped[kOp].op)->kernels[static_cast<int>(DeviceType::cpu)];
  KernelCall call = group;
  call.n_outputs = kGrouped[kOp].outputs;
  const std::int32_t calls = group.n_outputs / call.n_outputs;
  call.n_inputs = group.n_inputs / calls;
  for (std::int32_t k = 0; k < calls; ++k, call.inputs += call.n_inputs, call.outputs += call.n_outputs) kernel(call);
}

Kernel group_of(std::string_view op) {
  constexpr Kernel kKernels[] = {run_in_order<0>, run_in_order<1>, run_in_order<2>, run_in_order<3>, run_in_order<4>};
  for (std::size_t k = 0; k < std::size(kGrouped); ++k)
    if (kGrouped[k].op == op) return kKernels[k];
  return nullptr;
}

}  // namespace

// ---- rules ----

const char* FakeRuntime::problem(const std::string& text) {
  problems_.push_back(text);
  return kInvalid;
}

const char* FakeRuntime::refuse_in_capture(const char* what) {
  for (const auto& [stream, queue] : streams_)
    if (queue->capturing && queue->capturer == std::this_thread::get_id())
      return problem(fmt::format("{} while a stream is captured", what)), kNotAllowed;
  return nullptr;
}

FakeRuntime::Range FakeRuntime::range_of(const View& view) {
  const replay::Reach reach = replay::reach_of(view);
  return {static_cast<const char*>(view.data) - reach.before, static_cast<std::size_t>(reach.bytes)};
}

bool FakeRuntime::is_in(const Blocks& blocks, const Range& range) const {
  auto at = blocks.upper_bound(range.first);
  if (at == blocks.begin()) return false;
  --at;
  return range.first + range.bytes <= at->first + at->second.size();
}

void FakeRuntime::check_ranges(const Work& work) {
  for (const std::vector<Range>* ranges : {&work.reads, &work.writes})
    for (const Range& range : *ranges)
      if (range.bytes > 0 && !is_in(device_, range))
        problem(fmt::format("{}: {} bytes are in no allocation of the device", work.what, range.bytes));
}

std::int64_t FakeRuntime::bytes_in_use() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(used_);
}

bool FakeRuntime::at_rest() const {
  const std::lock_guard lock(mutex_);
  return device_.empty() && pinned_.empty() && streams_.empty() && events_.empty() && graphs_.empty() && execs_.empty();
}

std::int64_t FakeRuntime::waiting() const {
  const std::lock_guard lock(mutex_);
  std::int64_t pieces = 0;
  for (const auto& [stream, queue] : streams_) pieces += static_cast<std::int64_t>(queue->waiting.size());
  return pieces;
}

// ---- races ----

void FakeRuntime::join(Clock& clock, const Clock& other) {
  clock.resize(std::max(clock.size(), other.size()));
  for (std::size_t s = 0; s < other.size(); ++s) clock[s] = std::max(clock[s], other[s]);
}

void FakeRuntime::check_order(const Queue& queue, const Work& work) {
  for (const Range& range : work.reads) note_access(queue, work.what, range, false);
  for (const Range& range : work.writes) note_access(queue, work.what, range, true);
}

// Earlier accesses that a write covers are forgotten: whatever is in order behind the write is in order behind them.
void FakeRuntime::note_access(const Queue& queue, const std::string& what, const Range& range, bool writes) {
  if (range.bytes == 0 || !is_in(device_, range)) return;
  std::vector<Access>& before = accesses_[std::prev(device_.upper_bound(range.first))->first];
  const auto covers = [&](const Access& a) {
    return range.first <= a.range.first && a.range.first + a.range.bytes <= range.first + range.bytes;
  };
  for (const Access& a : before) {
    const bool overlap = a.range.first < range.first + range.bytes && range.first < a.range.first + a.range.bytes;
    const bool is_itself = a.stream == queue.number && a.number == queue.given;  // an op in place
    const bool in_order = is_itself || (a.stream < queue.clock.size() && queue.clock[a.stream] >= a.number);
    if (overlap && (writes || a.writes) && !in_order)
      problem(fmt::format("a race: {} on stream {} {} bytes that {} on stream {} {}", what, queue.number,
                          writes ? "writes" : "reads", a.what, a.stream, a.writes ? "writes" : "reads"));
  }
  std::erase_if(before, [&](const Access& a) { return covers(a) && (writes || (!a.writes && a.stream == queue.number)); });
  before.push_back({what, range, writes, queue.number, queue.given});
}

// ---- kernels ----

const kernels::cuda::KernelEntry* FakeRuntime::kernel(std::string_view op) const {
  const std::lock_guard lock(mutex_);
  if (missing.count(op) > 0) return nullptr;
  const Op* found = find_op(op);
  if (!found || found->n_regions != 0 || found->is(kHostCall)) return nullptr;
  const Kernel kernel = found->kernels[static_cast<int>(DeviceType::cpu)];
  if (!kernel) return nullptr;
  const Kernel group = group_of(op);
  const kernels::cuda::KernelEntry entry{found->name, kernel, nullptr, false, group != nullptr, group};
  return &entries_.try_emplace(std::string(op), entry).first->second;
}

std::int64_t FakeRuntime::workspace(const kernels::cuda::KernelEntry& entry, const KernelCall& call) const {
  for (std::int32_t k = 0; k < call.n_inputs; ++k)
    if (call.inputs[k].data) std::abort();  // a rule never sees data
  const Op& op = *find_op(entry.op);
  if (!op.workspace) return 0;
  return op.workspace(types_of(call.inputs, call.n_inputs), types_of(call.outputs, call.n_outputs), call.attrs);
}

// ---- memory ----

const char* FakeRuntime::allocate(std::size_t bytes, void** memory) {
  const std::lock_guard lock(mutex_);
  if (const char* error = refuse_in_capture("allocate")) return error;
  if (used_ + bytes > capacity) return "out of memory";
  std::vector<char> block(bytes, static_cast<char>(0xFF));
  *memory = block.data();
  accesses_.erase(block.data());
  device_[block.data()] = std::move(block);
  used_ += bytes;
  ++counts.allocations;
  return nullptr;
}

const char* FakeRuntime::free(void* memory) {
  const std::lock_guard lock(mutex_);
  if (const char* error = refuse_in_capture("free")) return error;
  const auto at = device_.find(static_cast<const char*>(memory));
  if (at == device_.end()) return problem("free of what is no allocation");
  bool too_early = false;
  for (const auto& [stream, queue] : streams_)
    if (!queue->waiting.empty()) too_early = true;
  used_ -= at->second.size();
  if (too_early) {
    problem("memory is freed while work is waiting");
    freed_too_early_.push_back(std::move(at->second));
  }
  device_.erase(at);
  ++counts.frees;
  return nullptr;
}

const char* FakeRuntime::allocate_pinned(std::size_t bytes, void** memory) {
  const std::lock_guard lock(mutex_);
  if (const char* error = refuse_in_capture("allocate_pinned")) return error;
  std::vector<char> block(bytes, static_cast<char>(0xFF));
  *memory = block.data();
  pinned_[block.data()] = std::move(block);
  ++counts.pinned;
  return nullptr;
}

const char* FakeRuntime::free_pinned(void* memory) {
  const std::lock_guard lock(mutex_);
  if (const char* error = refuse_in_capture("free_pinned")) return error;
  for (const auto& [stream, queue] : streams_)
    if (!queue->waiting.empty()) problem("pinned memory is freed while work is waiting");
  return pinned_.erase(static_cast<const char*>(memory)) == 1 ? nullptr : problem("free_pinned of what is no allocation");
}

const char* FakeRuntime::memory_info(std::size_t* free_bytes, std::size_t* total_bytes) {
  const std::lock_guard lock(mutex_);
  *free_bytes = capacity - used_;
  *total_bytes = capacity;
  return nullptr;
}

// ---- streams ----

const char* FakeRuntime::create_stream(Stream* stream) {
  const std::lock_guard lock(mutex_);
  auto queue = std::make_unique<Queue>();
  queue->number = static_cast<std::size_t>(counts.streams++);
  *stream = queue.get();
  streams_[*stream] = std::move(queue);
  return nullptr;
}

const char* FakeRuntime::destroy_stream(Stream stream) {
  const std::lock_guard lock(mutex_);
  const auto at = streams_.find(stream);
  if (at == streams_.end()) return problem("destroy_stream of what is no stream");
  if (!at->second->waiting.empty()) problem("a stream is destroyed while work is waiting");
  gone_streams_.push_back(std::move(at->second));
  streams_.erase(at);
  return nullptr;
}

void FakeRuntime::give(Queue& queue, Work work) {
  check_ranges(work);
  if (queue.capturing) {
    queue.captured.push_back(std::move(work));
    return;
  }
  join(queue.clock, host_[std::this_thread::get_id()]);
  queue.clock.resize(std::max(queue.clock.size(), queue.number + 1));
  queue.clock[queue.number] = queue.given++;
  check_order(queue, work);
  queue.waiting.push_back(std::move(work));
}

void FakeRuntime::run_until(Queue& queue, std::int64_t given) {
  while (queue.ran < given) {
    const Work work = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    ++queue.ran;
    if (lost_) continue;
    check_ranges(work);
    if (const char* error = work.run()) lost_ = error;
  }
}

const char* FakeRuntime::synchronize(Stream stream) {
  const std::lock_guard lock(mutex_);
  if (const char* error = refuse_in_capture("synchronize")) return error;
  Queue& queue = *streams_.at(stream);
  ++counts.synchronizations;
  run_until(queue, queue.given);
  Clock seen = queue.clock;
  seen.resize(std::max(seen.size(), queue.number + 1));
  seen[queue.number] = queue.given;
  join(host_[std::this_thread::get_id()], seen);
  return lost_;
}

// ---- events ----

const char* FakeRuntime::create_event(Event* event) {
  const std::lock_guard lock(mutex_);
  auto place = std::make_unique<Place>();
  *event = place.get();
  events_[*event] = std::move(place);
  return nullptr;
}

const char* FakeRuntime::destroy_event(Event event) {
  const std::lock_guard lock(mutex_);
  return events_.erase(event) == 1 ? nullptr : problem("destroy_event of what is no event");
}

const char* FakeRuntime::record(Event event, Stream stream) {
  const std::lock_guard lock(mutex_);
  Queue& queue = *streams_.at(stream);
  if (queue.capturing) return problem("an event is recorded while its stream is captured"), kNotAllowed;
  ++counts.records;
  Place& place = *events_.at(event);
  place = {stream, queue.given, queue.clock};
  place.clock.resize(std::max(place.clock.size(), queue.number + 1));
  place.clock[queue.number] = queue.given;
  return nullptr;
}

const char* FakeRuntime::wait_on_device(Stream stream, Event event) {
  const std::lock_guard lock(mutex_);
  Queue& queue = *streams_.at(stream);
  if (queue.capturing) return problem("a captured stream waits for an event outside of the capture"), kNotAllowed;
  ++counts.stream_waits;
  const Place place = *events_.at(event);
  join(queue.clock, place.clock);
  give(queue, {"wait_on_device", {}, {}, [=, this]() -> const char* {
                 if (const auto on = streams_.find(place.stream); on != streams_.end()) run_until(*on->second, place.given);
                 return nullptr;
               }});
  return nullptr;
}

const char* FakeRuntime::wait_on_host(Event event) {
  const std::lock_guard lock(mutex_);
  if (const char* error = refuse_in_capture("wait_on_host")) return error;
  ++counts.event_waits;
  const Place place = *events_.at(event);
  if (const auto on = streams_.find(place.stream); on != streams_.end()) run_until(*on->second, place.given);
  join(host_[std::this_thread::get_id()], place.clock);
  return lost_;
}

const char* FakeRuntime::is_done(Event event, bool* done) {
  const std::lock_guard lock(mutex_);
  if (const char* error = refuse_in_capture("is_done")) return error;
  const Place& place = *events_.at(event);
  const auto on = streams_.find(place.stream);
  *done = on == streams_.end() || on->second->ran >= place.given;
  return lost_;
}

// ---- copies and kernels ----

const char* FakeRuntime::copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream) {
  const std::lock_guard lock(mutex_);
  if (lost_) return lost_;
  if (is_in(device_, {static_cast<const char*>(from), bytes})) return problem("copy_to_device from the device");
  Queue& queue = *streams_.at(stream);
  if (queue.capturing && !is_in(pinned_, {static_cast<const char*>(from), bytes}))
    return problem("a copy from pageable memory is captured"), kNotAllowed;
  ++counts.uploads;
  give(queue, {"copy_to_device", {}, {{static_cast<const char*>(to), bytes}}, [=]() -> const char* {
                 std::memcpy(to, from, bytes);
                 return nullptr;
               }});
  return nullptr;
}

const char* FakeRuntime::copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream) {
  const std::lock_guard lock(mutex_);
  if (lost_) return lost_;
  if (is_in(device_, {static_cast<const char*>(to), bytes})) return problem("copy_to_host into the device");
  Queue& queue = *streams_.at(stream);
  if (queue.capturing && !is_in(pinned_, {static_cast<const char*>(to), bytes}))
    return problem("a copy to pageable memory is captured"), kNotAllowed;
  ++counts.downloads;
  give(queue, {"copy_to_host", {{static_cast<const char*>(from), bytes}}, {}, [=]() -> const char* {
                 std::memcpy(to, from, bytes);
                 return nullptr;
               }});
  return nullptr;
}

const char* FakeRuntime::copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) {
  const std::lock_guard lock(mutex_);
  if (lost_) return lost_;
  give(*streams_.at(stream), {"copy_on_device",
                              {{static_cast<const char*>(from), bytes}},
                              {{static_cast<const char*>(to), bytes}},
                              [=]() -> const char* {
                                std::memmove(to, from, bytes);
                                return nullptr;
                              }});
  return nullptr;
}

const char* FakeRuntime::fill(void* to, int byte, std::size_t bytes, Stream stream) {
  const std::lock_guard lock(mutex_);
  if (lost_) return lost_;
  give(*streams_.at(stream), {"fill", {}, {{static_cast<const char*>(to), bytes}}, [=]() -> const char* {
                                std::memset(to, byte, bytes);
                                return nullptr;
                              }});
  return nullptr;
}

void FakeRuntime::run(Kernel kernel, const KernelCall& call) {
  const std::lock_guard lock(mutex_);
  std::string name = "a kernel that this device does not have";
  for (const auto& [op, entry] : entries_)
    if (entry.kernel == kernel || (entry.group && entry.group == kernel)) name = op;
  Queue& queue = *streams_.at(call.stream);
  if (lost_) return call.fault->report(lost_, 0);
  if (queue.capturing && name == refused_in_capture) return call.fault->report("this launch cannot be captured", 900);
  if (!is_in(pinned_, {reinterpret_cast<const char*>(call.fault), sizeof(KernelFault)}))
    problem(name + ": its fault is not in pinned memory");
  auto own = std::make_shared<OwnCall>(call, find_op(name));
  Work work{name, {}, {}, [=, this]() -> const char* {
              run_kernel(kernel, *own);
              ++counts.kernels;
              return name == breaks ? kLost : nullptr;
            }};
  for (std::int32_t k = 0; k < call.n_inputs + call.n_outputs; ++k)
    (k < call.n_inputs ? work.reads : work.writes).push_back(range_of(own->views[static_cast<std::size_t>(k)]));
  work.writes.push_back({static_cast<const char*>(call.workspace), call.workspace_bytes});
  if (reinterpret_cast<std::uintptr_t>(call.workspace) % 16 != 0) problem(name + ": its workspace is not aligned");
  give(queue, std::move(work));
}

// ---- graphs ----

const char* FakeRuntime::begin_capture(Stream stream) {
  const std::lock_guard lock(mutex_);
  if (const char* error = refuse_in_capture("begin_capture")) return error;
  streams_.at(stream)->capturing = true;
  streams_.at(stream)->capturer = std::this_thread::get_id();
  ++counts.captures;
  return nullptr;
}

const char* FakeRuntime::end_capture(Stream stream, Graph* graph) {
  const std::lock_guard lock(mutex_);
  Queue& queue = *streams_.at(stream);
  if (!queue.capturing) return problem("end_capture without a capture");
  queue.capturing = false;
  auto recording = std::make_unique<Recording>();
  recording->nodes = std::exchange(queue.captured, {});
  *graph = recording.get();
  graphs_[*graph] = std::move(recording);
  return nullptr;
}

const char* FakeRuntime::node_count(Graph graph, std::size_t* nodes) {
  const std::lock_guard lock(mutex_);
  *nodes = graphs_.at(graph)->nodes.size();
  return nullptr;
}

const char* FakeRuntime::instantiate(Graph graph, GraphExec* exec) {
  const std::lock_guard lock(mutex_);
  if (const char* error = refuse_in_capture("instantiate")) return error;
  auto copy = std::make_unique<Recording>(*graphs_.at(graph));
  *exec = copy.get();
  execs_[*exec] = std::move(copy);
  ++counts.instantiations;
  return nullptr;
}

const char* FakeRuntime::upload(GraphExec exec, Stream) {
  const std::lock_guard lock(mutex_);
  return execs_.count(exec) == 1 ? nullptr : problem("upload of what is no graph");
}

const char* FakeRuntime::launch(GraphExec exec, Stream stream) {
  const std::lock_guard lock(mutex_);
  if (lost_) return lost_;
  if (execs_.count(exec) == 0) return problem("launch of what is no graph");
  ++counts.launches;
  for (const Work& work : execs_.at(exec)->nodes) give(*streams_.at(stream), work);
  return nullptr;
}

const char* FakeRuntime::destroy_graph(Graph graph) {
  const std::lock_guard lock(mutex_);
  return graphs_.erase(graph) == 1 ? nullptr : problem("destroy_graph of what is no graph");
}

const char* FakeRuntime::destroy_exec(GraphExec exec) {
  const std::lock_guard lock(mutex_);
  return execs_.erase(exec) == 1 ? nullptr : problem("destroy_exec of what is no graph");
}

// ---- eager code ----

std::unique_ptr<EagerDevice> waiting_eager_device(std::shared_ptr<FakeRuntime> fake) {
  Settings waits = settings();
  waits.sync = true;
  const ScopedSettings scope(waits);
  return make_runtime_device("cuda", std::move(fake));
}

}  // namespace tapedeck::test
