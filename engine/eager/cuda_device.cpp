// A GPU as a device of eager code. Each host thread has a stream of its own (device_lane.h). Memory comes from a cache of
// blocks, in the order of the stream, so a block may be given back while an op that reads it still waits.
//
// Order between streams: each block knows the last work that wrote it, and the work that has read it since. A stream that is
// going to use the block waits for the work of other streams among these: an event is recorded on the other stream, behind all
// of its work so far, and this stream waits for the event. One lock holds this together with the launch, so no work comes
// between. Nobody waits for the device while holding it, but for a device whose memory is full.
//
//     thread 0   a = exp(x)              written: 1 of lane 0
//     thread 1   b = tanh(a)             event behind 1 of lane 0; lane 1 waits for it; read: 1 of lane 1
//     thread 0   a += 1                  event behind 1 of lane 1; lane 0 waits for it; written: 2 of lane 0
//
// While there is one lane, nobody notes anything. The second one begins behind all work of the first.
//
// A kernel reports a fault in memory of the host that the device can write. Every piece of work has a place of its own in a
// ring of such places, with the op and the call site beside it. settle() looks at the places of all work that is then known to
// have run, of any lane; a ring that is full is settled first.
#include <tapedeck/engine/eager/cuda_device.h>

#include <tapedeck/engine/eager/block_cache.h>
#include <tapedeck/engine/eager/device_lane.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/kernels/cuda/device_runtime.h>
#include <tapedeck/kernels/cuda/fault_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck {
namespace cuda = kernels::cuda;

namespace {

class RuntimeDevice final : public EagerDevice {
  using Lock = std::unique_lock<std::mutex>;

 public:
  // Throws DeviceError if the device gives no stream.
  RuntimeDevice(std::string name, std::shared_ptr<cuda::DeviceRuntime> runtime)
      : name_(std::move(name)),
        runtime_(std::move(runtime)),
        blocks_([this](std::size_t bytes) { return new_block(bytes); }, [this](void* block) { runtime_->free(block); }) {
    own_lane();
  }
  ~RuntimeDevice() override {
    {
      const std::lock_guard lock(idle_->mutex);
      idle_->open = false;
    }
    wait_for_all();
    blocks_.trim();
    if (joined_) runtime_->destroy_event(joined_);
  }

  const std::string& name() const override { return name_; }

  void write(void* to, const void* from, std::size_t bytes) override {
    DeviceLane& lane = own_lane();
    Lock lock(mutex_);
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t piece = std::min(bytes - done, DeviceLane::kStaging);
      char* const staged = stage(lane, piece, lock);
      std::memcpy(staged, static_cast<const char*>(from) + done, piece);
      char* const target = static_cast<char*>(to) + done;
      const char* error = order(lane, target, true);
      if (!error) error = runtime_->copy_to_device(target, staged, piece, lane.stream);
      begin_work(lane, {});
      if (error) settle(lane, error, lock);
      done += piece;
    }
  }

  // A copy to memory that is not pinned would wait while the lock is held.
  void read(void* to, const void* from, std::size_t bytes) override {
    DeviceLane& lane = own_lane();
    Lock lock(mutex_);
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t piece = std::min(bytes - done, DeviceLane::kStaging);
      char* const staged = stage(lane, piece, lock);
      const char* const source = static_cast<const char*>(from) + done;
      const char* error = order(lane, source, false);
      if (!error) error = runtime_->copy_to_host(staged, source, piece, lane.stream);
      begin_work(lane, {});
      settle(lane, error, lock);
      std::memcpy(static_cast<char*>(to) + done, staged, piece);
      done += piece;
    }
  }

  const cuda::KernelEntry* kernel(std::string_view op) const override { return runtime_->kernel(op); }
  std::int64_t workspace(const cuda::KernelEntry& entry, const KernelCall& call) const override {
    return runtime_->workspace(entry, call);
  }

  void launch(const Op& op, Kernel kernel, KernelCall& call, Site site) override {
    DeviceLane& lane = own_lane();
    Lock lock(mutex_);
    if (lane.is_full()) settle(lane, nullptr, lock);
    const char* const error = order(lane, call);
    call.stream = lane.stream;
    call.fault = &lane.faults[begin_work(lane, {&op, site})];
    if (error)
      call.fault->report(error, 0);
    else
      runtime_->run(kernel, call);
    if (synchronous_) settle(lane, nullptr, lock);
  }

  void order_after_ops(cuda::Stream stream) override {
    DeviceLane& lane = own_lane();
    Lock lock(mutex_);
    const char* error = nullptr;
    for (const auto& other : lanes_)
      if (!error) error = cross(*other, stream);
    if (error) settle(lane, error, lock);
  }

  void order_ops_after(cuda::Stream stream) override {
    DeviceLane& lane = own_lane();
    Lock lock(mutex_);
    const char* error = joined_ ? nullptr : runtime_->create_event(&joined_);
    if (!error) error = runtime_->record(joined_, stream);
    for (const auto& other : lanes_)
      if (!error) error = runtime_->wait_on_device(other->stream, joined_);
    if (error) settle(lane, error, lock);
  }

  void synchronize() override {
    DeviceLane& lane = own_lane();
    Lock lock(mutex_);
    const char* error = nullptr;
    for (const auto& other : lanes_)
      if (!error) error = pass(lane, *other, other->given);
    settle(lane, error, lock);
  }

 protected:
  void* take(std::int64_t bytes) override {
    DeviceLane& lane = own_lane();
    Lock lock(mutex_);
    refused_.clear();
    const char* late = nullptr;
    void* const block = blocks_.take(static_cast<std::size_t>(bytes), lane.number, [&] { late = wait_for_all(); });
    if (block) return block;
    if (late) settle(lane, late, lock);
    if (refused_ != "out of memory") settle(lane, refused_.c_str(), lock);
    return nullptr;
  }
  void give(void* block) noexcept override {
    const std::lock_guard lock(mutex_);
    blocks_.give(block);
  }

 private:
  // ---- lanes ----

  static std::vector<LaneSeat>& seats() {
    static thread_local std::vector<LaneSeat> seats;
    return seats;
  }

  DeviceLane& own_lane() {
    for (const LaneSeat& seat : seats())
      if (seat.is_on(idle_)) return seat.lane();
    std::erase_if(seats(), [](const LaneSeat& seat) { return seat.is_left(); });
    return seats().emplace_back(idle_, &free_lane()).lane();
  }

  DeviceLane& free_lane() {
    {
      const std::lock_guard lock(idle_->mutex);
      if (!idle_->lanes.empty()) {
        DeviceLane* const lane = idle_->lanes.back();
        idle_->lanes.pop_back();
        return *lane;
      }
    }
    const std::lock_guard lock(mutex_);
    auto lane = std::make_unique<DeviceLane>(*runtime_, lanes_.size());
    lane->open();
    for (const auto& other : lanes_) {
      const char* error = pass(*lane, *other, other->given);
      if (!error && other->given == 0) error = cross(*other, lane->stream);  // its stream may wait for that of a replay
      if (error) throw DeviceError(error);
    }
    return *lanes_.emplace_back(std::move(lane));
  }

  // REQUIRES of all below: mutex_ is held.

  // ---- order ----

  // From now on the stream's work runs after all work that the lane has been given.
  const char* cross(DeviceLane& lane, cuda::Stream stream) {
    if (const char* error = runtime_->record(lane.crossed, lane.stream)) return error;
    return runtime_->wait_on_device(stream, lane.crossed);
  }

  // From now on the lane's work runs after the first `work` pieces of the other lane.
  const char* pass(DeviceLane& lane, DeviceLane& other, std::uint64_t work) {
    if (&lane == &other || lane.passed(other) >= work) return nullptr;
    if (const char* error = cross(other, lane.stream)) return error;
    lane.others.resize(std::max(lanes_.size(), lane.others.size()));
    for (std::size_t k = 0; k < other.others.size(); ++k) lane.others[k] = std::max(lane.others[k], other.others[k]);
    lane.others[other.number] = other.given;
    return nullptr;
  }

  // The next piece of work of the lane uses the block that has this byte.
  const char* order(DeviceLane& lane, const void* address, bool writes) {
    BlockCache::Block* const block = lanes_.size() > 1 ? blocks_.find(address) : nullptr;
    if (!block) return nullptr;
    const char* error = behind(lane, block->written);
    for (const StreamWork& read : block->read)
      if (!error && writes) error = behind(lane, read);
    if (error) return error;
    const StreamWork mine{lane.number, lane.given + 1};
    if (writes) {
      block->written = mine;
      block->read.clear();
      return nullptr;
    }
    std::erase_if(block->read, [&](const StreamWork& read) { return read.stream == mine.stream; });
    block->read.push_back(mine);
    return nullptr;
  }

  const char* behind(DeviceLane& lane, const StreamWork& work) {
    return work.number > 0 ? pass(lane, *lanes_[work.stream], work.number) : nullptr;
  }

  const char* order(DeviceLane& lane, const KernelCall& call) {
    const char* error = nullptr;
    for (std::int32_t k = 0; k < call.n_inputs && !error; ++k) error = order(lane, call.inputs[k].data, false);
    for (std::int32_t k = 0; k < call.n_outputs && !error; ++k) error = order(lane, call.outputs[k].data, true);
    if (call.workspace && !error) error = order(lane, call.workspace, true);
    return error;
  }

  // ---- work ----

  // Staging memory for a copy; it stays until the thread waits again after that. Waits if there is not so much.
  char* stage(DeviceLane& lane, std::size_t bytes, Lock& lock) {
    if (lane.is_full() || lane.staged + bytes > DeviceLane::kStaging) settle(lane, nullptr, lock);
    return lane.staging + std::exchange(lane.staged, lane.staged + bytes);
  }

  std::size_t begin_work(DeviceLane& lane, const DeviceLane::Launched& launched) {
    const std::size_t place = DeviceLane::place_of(++lane.given);
    lane.launched[place] = launched;
    return place;
  }

  void* new_block(std::size_t bytes) {
    void* block = nullptr;
    const char* const error = runtime_->allocate(bytes, &block);
    if (error) refused_ = error;
    return error ? nullptr : block;
  }

  // Keeps the lock, so that no work begins meanwhile. Returns the first error of the device.
  const char* wait_for_all() {
    const char* first = nullptr;
    for (const auto& lane : lanes_) {
      const char* const error = runtime_->synchronize(lane->stream);
      if (!first) first = error;
    }
    return first;
  }

  // ---- errors ----

  // Waits for the work of the lane of this thread, without the lock. Throws the first fault that is known then, or else the
  // error of the device: `error`, if there is one already.
  void settle(DeviceLane& lane, const char* error, Lock& lock) {
    std::vector<std::uint64_t> ran = lane.others;
    ran.resize(lanes_.size());
    ran[lane.number] = lane.given;
    const char* late = runtime_->record(lane.finished, lane.stream);
    lock.unlock();
    if (!late) late = runtime_->wait_on_host(lane.finished);
    lock.lock();
    lane.staged = 0;
    const DeviceLane::Launched last = last_op(lane);
    std::uint64_t unchecked = 0;
    for (std::size_t k = 0; k < ran.size(); ++k) unchecked += ran[k] - std::min(ran[k], lanes_[k]->checked);
    throw_fault(lane, lane.given);
    for (std::size_t k = 0; k < ran.size(); ++k) throw_fault(*lanes_[k], ran[k]);
    if (!error) error = late;
    if (!error) return;
    throw ExecutionError(
        error_text(last.op ? last.op->name : name_.c_str(),
                   fmt::format("{}: {}; one of the {} ops and copies since the last synchronisation failed, and this is the "
                               "last op of them (TAPEDECK_SYNC=1 finds the op)",
                               name_, error, unchecked),
                   last.site));
  }

  // The last op of the lane that is not checked; none if there is none.
  static DeviceLane::Launched last_op(const DeviceLane& lane) {
    for (std::uint64_t work = lane.given; work > lane.checked; --work)
      if (const DeviceLane::Launched& launched = lane.launched[DeviceLane::place_of(work)]; launched.op) return launched;
    return {};
  }

  // Checks the first `ran` pieces of work, which have run. Those behind a fault may be its consequences, so they are not
  // checked any more.
  static void throw_fault(DeviceLane& lane, std::uint64_t ran) {
    std::optional<ExecutionError> first;
    for (; lane.checked < ran; ++lane.checked) {
      const std::size_t place = DeviceLane::place_of(lane.checked + 1);
      KernelFault& fault = lane.faults[place];
      if (!fault.what.load()) continue;
      const DeviceLane::Launched& launched = lane.launched[place];
      const std::string text = fmt::format("{} ({})", cuda::fault_text(fault), fault.value.load());
      if (!first) first.emplace(error_text(launched.op->name, text, launched.site));
      new (&fault) KernelFault;
    }
    if (first) throw *first;
  }

  const std::string name_;
  const std::shared_ptr<cuda::DeviceRuntime> runtime_;
  const std::shared_ptr<IdleLanes> idle_ = std::make_shared<IdleLanes>();
  std::vector<std::unique_ptr<DeviceLane>> lanes_;
  BlockCache blocks_;
  cuda::Event joined_ = nullptr;  // behind the work of a stream that ops wait for
  std::string refused_;           // the error of the last allocation
  const bool synchronous_ = settings().sync;
  std::mutex mutex_;
};

}  // namespace

std::unique_ptr<EagerDevice> make_runtime_device(std::string name, std::shared_ptr<cuda::DeviceRuntime> runtime) {
  return std::make_unique<RuntimeDevice>(std::move(name), std::move(runtime));
}

std::unique_ptr<EagerDevice> make_cuda_device(int number) {
  std::string why;
  std::shared_ptr<cuda::DeviceRuntime> runtime = cuda::cuda_runtime(number, &why);
  if (!runtime) throw DeviceError(why);
  return make_runtime_device(number == 0 ? "cuda" : fmt::format("cuda:{}", number), std::move(runtime));
}

}  // namespace tapedeck
