// A device for tests of eager code, without a GPU. Its memory is apart from that of the host's tensors, and the CPU kernels are
// its kernels. As on a GPU, a call only puts its work into a queue, and the queue runs when somebody waits. Blocks that are
// given back stay until the work before them has run; then they are filled with 0xFF and freed. A kernel with an address that
// is in no block is a failure of the test.
#pragma once

#include <tapedeck/engine/eager/eager_device.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::testing {

class FakeDevice final : public EagerDevice {
 public:
  explicit FakeDevice(std::string name = "cuda", std::int64_t memory_bytes = 1 << 30)
      : name_(std::move(name)), left_(memory_bytes) {}
  ~FakeDevice() override;

  const std::string& name() const override { return name_; }
  void write(void* to, const void* from, std::size_t bytes) override;
  void read(void* to, const void* from, std::size_t bytes) override;
  const kernels::cuda::KernelEntry* kernel(std::string_view op) const override;
  std::int64_t workspace(const kernels::cuda::KernelEntry&, const KernelCall&) const override { return 0; }
  void launch(const Op& op, Kernel kernel, KernelCall& call, Site site) override;
  void synchronize() override;

  std::set<std::string> missing;  // ops without a kernel here, besides those whose CPU kernel needs a workspace
  int launches = 0;
  std::size_t waiting() const { return queue_.size(); }
  std::size_t blocks() const { return blocks_.size(); }

 protected:
  void* take(std::int64_t bytes) override;
  void give(void* block) noexcept override;

 private:
  void run_queue();
  bool is_here(const void* at, std::size_t bytes) const;

  std::string name_;
  std::int64_t left_;
  std::map<const unsigned char*, std::vector<unsigned char>> blocks_;  // by address
  std::deque<std::function<void()>> queue_;
  std::string failed_;  // the message of the first op that failed
  mutable std::map<std::string, kernels::cuda::KernelEntry, std::less<>> entries_;
};

// A call as it waits in the queue: with views and attributes of its own, because those of the caller are gone when it runs.
struct WaitingCall {
  std::vector<View> views;
  std::vector<unsigned char> attrs;
  KernelCall call;
};

// The bytes from the first to the last element of a view with strides that are not negative.
inline std::size_t reach(const View& v) {
  std::int64_t last = 0;
  for (int d = 0; d < v.rank; ++d) last += (v.sizes[d] - 1) * v.strides[d];
  return static_cast<std::size_t>(last + 1) * dtype_size(v.dtype);
}

inline FakeDevice::~FakeDevice() { run_queue(); }

inline void* FakeDevice::take(std::int64_t bytes) {
  if (bytes > left_) return nullptr;
  left_ -= bytes;
  std::vector<unsigned char> block(static_cast<std::size_t>(bytes), 0xff);
  const unsigned char* const at = block.data();
  blocks_.emplace(at, std::move(block));
  return const_cast<unsigned char*>(at);
}

inline void FakeDevice::give(void* block) noexcept {
  queue_.push_back([this, block] {
    const auto at = blocks_.find(static_cast<unsigned char*>(block));
    left_ += static_cast<std::int64_t>(at->second.size());
    std::fill(at->second.begin(), at->second.end(), static_cast<unsigned char>(0xff));
    blocks_.erase(at);
  });
}

inline bool FakeDevice::is_here(const void* at, std::size_t bytes) const {
  auto block = blocks_.upper_bound(static_cast<const unsigned char*>(at));
  if (block == blocks_.begin()) return false;
  --block;
  return static_cast<const unsigned char*>(at) + bytes <= block->first + block->second.size();
}

inline void FakeDevice::write(void* to, const void* from, std::size_t bytes) {
  EXPECT_TRUE(is_here(to, bytes) && !is_here(from, 1)) << "write()";
  const auto* const first = static_cast<const unsigned char*>(from);
  queue_.push_back(
      [to, data = std::vector<unsigned char>(first, first + bytes)] { std::memcpy(to, data.data(), data.size()); });
}

inline void FakeDevice::read(void* to, const void* from, std::size_t bytes) {
  synchronize();
  EXPECT_TRUE(is_here(from, bytes) && !is_here(to, 1)) << "read()";
  std::memcpy(to, from, bytes);
}

inline const kernels::cuda::KernelEntry* FakeDevice::kernel(std::string_view name) const {
  const Op* const op = find_op(name);
  if (!op || op->workspace || missing.contains(std::string(name))) return nullptr;
  kernels::cuda::KernelEntry& entry = entries_[std::string(name)];
  entry = {op->name, op->kernels[static_cast<int>(DeviceType::cpu)], nullptr, op->is(kNativeHalf)};
  return entry.kernel ? &entry : nullptr;
}

inline void FakeDevice::launch(const Op& op, Kernel kernel, KernelCall& call, Site site) {
  ++launches;
  auto waiting = std::make_shared<WaitingCall>();
  waiting->views.assign(call.inputs, call.inputs + call.n_inputs);
  waiting->views.insert(waiting->views.end(), call.outputs, call.outputs + call.n_outputs);
  for (const View& v : waiting->views)
    EXPECT_TRUE(v.numel() == 0 || is_here(v.data, reach(v))) << op.name << " is given bytes of the host";
  if (op.attrs) {
    const auto* const first = static_cast<const unsigned char*>(call.attrs);
    waiting->attrs.assign(first, first + op.attrs->size);
  }
  waiting->call = call;
  queue_.push_back([this, waiting, kernel, &op, site] {
    KernelFault fault;
    KernelCall c = waiting->call;
    c.inputs = waiting->views.data();
    c.outputs = c.inputs + c.n_inputs;
    c.attrs = waiting->attrs.data();
    c.fault = &fault;
    kernel(c);
    if (fault.what.load() && failed_.empty())
      failed_ = error_text(op.name, fmt::format("{} ({})", fault.what.load(), fault.value.load()), site).str();
  });
  if (op.is(kRandom)) run_queue();  // the path of a draw is borrowed: it is gone when the call returns
}

inline void FakeDevice::run_queue() {
  while (!queue_.empty()) {
    queue_.front()();
    queue_.pop_front();
  }
}

inline void FakeDevice::synchronize() {
  run_queue();
  if (!failed_.empty()) throw ExecutionError(std::exchange(failed_, {}));
}

}  // namespace tapedeck::testing
