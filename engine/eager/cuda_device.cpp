// A GPU as a device of eager code. All work goes to one stream. Memory comes from a cache of blocks, in the order of the
// stream, so a block may be given back while an op that reads it still waits.
//
// A kernel reports a fault in memory of the host that the device can write. Every launch has a place of its own in a ring of
// such places, with the op and the call site beside it. synchronize() looks at the places since the last time; a ring that is
// full is synchronized first.
#include <tapedeck/engine/eager/cuda_device.h>

#include <tapedeck/engine/eager/block_cache.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/kernels/cuda/fault_text.h>
#include <tapedeck/kernels/cuda/runtime.h>

#include <fmt/format.h>

#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace tapedeck {
namespace {

namespace cuda = kernels::cuda;

class CudaDevice final : public EagerDevice {
 public:
  CudaDevice(int number, cuda::Stream stream, KernelFault* faults)
      : name_(number == 0 ? "cuda" : fmt::format("cuda:{}", number)),
        stream_(stream),
        faults_(faults),
        launched_(kPlaces),
        blocks_(
            [number](std::size_t bytes) {
              void* block = nullptr;
              return cuda::device_allocate(number, bytes, &block) ? nullptr : block;
            },
            [](void* block) { cuda::device_free(block); }) {}

  const std::string& name() const override { return name_; }

  void write(void* to, const void* from, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    check(cuda::copy_to_device(to, from, bytes, stream_));
    if (bytes > kStaged) check(cuda::synchronize(stream_));  // the driver reads long host memory later
  }

  void read(void* to, const void* from, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    check(cuda::copy_to_host(to, from, bytes, stream_));
    settle();
  }

  const cuda::KernelEntry* kernel(std::string_view op) const override { return cuda::find_kernel(op); }

  void launch(const Op& op, Kernel kernel, KernelCall& call, Site site) override {
    const std::lock_guard lock(mutex_);
    if (used_ == kPlaces) settle();
    KernelFault& fault = faults_[used_];
    launched_[used_++] = {&op, site};
    call.stream = stream_;
    call.fault = &fault;
    kernel(call);
    if (synchronous_) settle();
  }

  void synchronize() override {
    const std::lock_guard lock(mutex_);
    settle();
  }

 protected:
  void* take(std::int64_t bytes) override {
    return blocks_.take(static_cast<std::size_t>(bytes), [this] { cuda::synchronize(stream_); });
  }
  void give(void* block) noexcept override { blocks_.give(block); }

 private:
  static constexpr std::size_t kPlaces = 4096;
  static constexpr std::size_t kStaged = 64 << 10;  // the driver copies this many bytes of host memory before it returns

  struct Launched {
    const Op* op = nullptr;
    Site site;
  };

  // Waits, and throws the first fault since the last time. REQUIRES: mutex_ is held.
  void settle() {
    const char* const error = cuda::synchronize(stream_);
    const std::size_t used = std::exchange(used_, 0);
    for (std::size_t i = 0; i < used; ++i) {
      if (!faults_[i].what.load()) continue;
      const Launched at = launched_[i];
      const std::string text = fmt::format("{} ({})", cuda::fault_text(faults_[i]), faults_[i].value.load());
      for (std::size_t k = i; k < used; ++k) new (&faults_[k]) KernelFault;
      throw ExecutionError(error_text(at.op->name, text, at.site));
    }
    if (!error) return;
    const Launched last = used > 0 ? launched_[used - 1] : Launched{};
    throw ExecutionError(
        error_text(last.op ? last.op->name : name_.c_str(),
                   fmt::format("{}; one of the {} ops since the last synchronisation failed, and this is the last of them "
                               "(TAPEDECK_SYNC=1 finds the op)",
                               error, used),
                   last.site));
  }

  void check(const char* error) const {
    if (error) throw ExecutionError(fmt::format("{}: {}", name_, error));
  }

  const std::string name_;
  const cuda::Stream stream_;
  KernelFault* const faults_;  // kPlaces of them
  std::vector<Launched> launched_;
  std::size_t used_ = 0;
  BlockCache blocks_;
  const bool synchronous_ = settings().sync;
  std::mutex mutex_;
};

void require(const char* error) {
  if (error) throw DeviceError(error);
}

}  // namespace

std::unique_ptr<EagerDevice> make_cuda_device(int number) {
  const cuda::CudaStatus& status = cuda::cuda_status();
  if (!status.available) throw DeviceError(status.reason);
  if (number >= status.device_count)
    throw DeviceError(fmt::format("no device cuda:{}: this machine has {} CUDA device{}", number, status.device_count,
                                  status.device_count == 1 ? "" : "s"));
  constexpr std::size_t kFaultBytes = 4096 * sizeof(KernelFault);
  cuda::Stream stream = nullptr;
  void* faults = nullptr;
  require(cuda::stream_create(number, &stream));
  require(cuda::allocate_pinned(kFaultBytes, &faults));
  for (std::size_t i = 0; i < 4096; ++i) new (static_cast<KernelFault*>(faults) + i) KernelFault;
  return std::make_unique<CudaDevice>(number, stream, static_cast<KernelFault*>(faults));
}

}  // namespace tapedeck
