// A GPU as a device of eager code. All work goes to one stream. Memory comes from a cache of blocks, in the order of the
// stream, so a block may be given back while an op that reads it still waits.
//
// A kernel reports a fault in memory of the host that the device can write. Every launch has a place of its own in a ring of
// such places, with the op and the call site beside it. synchronize() looks at the places since the last time; a ring that is
// full is synchronized first.
#include <tapedeck/engine/eager/cuda_device.h>

#include <tapedeck/engine/eager/block_cache.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/kernels/cuda/device_runtime.h>
#include <tapedeck/kernels/cuda/fault_text.h>

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck {
namespace cuda = kernels::cuda;

namespace {

class RuntimeDevice final : public EagerDevice {
 public:
  // Throws DeviceError if the device gives no stream.
  RuntimeDevice(std::string name, std::shared_ptr<cuda::DeviceRuntime> runtime)
      : name_(std::move(name)),
        runtime_(std::move(runtime)),
        launched_(kPlaces),
        blocks_([this](std::size_t bytes) { return new_block(bytes); }, [this](void* block) { runtime_->free(block); }) {
    void* faults = nullptr;
    require(runtime_->create_stream(&stream_));
    require(runtime_->allocate_pinned(kPlaces * sizeof(KernelFault), &faults));
    faults_ = static_cast<KernelFault*>(faults);
    for (std::size_t i = 0; i < kPlaces; ++i) new (&faults_[i]) KernelFault;
    void* staging = nullptr;
    require(runtime_->allocate_pinned(kStaging, &staging));
    staging_ = static_cast<char*>(staging);
  }
  ~RuntimeDevice() override {
    runtime_->synchronize(stream_);
    blocks_.trim();
    runtime_->free_pinned(faults_);
    runtime_->free_pinned(staging_);
    runtime_->destroy_stream(stream_);
  }

  const std::string& name() const override { return name_; }

  void write(void* to, const void* from, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    const bool staged = bytes <= kStaging;
    const char* const error = runtime_->copy_to_device(to, staged ? staged_copy(from, bytes) : from, bytes, stream_);
    if (error || !staged) settle(error);  // the stream still reads `from`
  }

  void read(void* to, const void* from, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    settle(runtime_->copy_to_host(to, from, bytes, stream_));
  }

  const cuda::KernelEntry* kernel(std::string_view op) const override { return runtime_->kernel(op); }
  std::int64_t workspace(const cuda::KernelEntry& entry, const KernelCall& call) const override {
    return runtime_->workspace(entry, call);
  }

  void launch(const Op& op, Kernel kernel, KernelCall& call, Site site) override {
    const std::lock_guard lock(mutex_);
    if (used_ == kPlaces) settle(nullptr);
    KernelFault& fault = faults_[used_];
    launched_[used_++] = {&op, site};
    call.stream = stream_;
    call.fault = &fault;
    runtime_->run(kernel, call);
    if (synchronous_) settle(nullptr);
  }

  void synchronize() override {
    const std::lock_guard lock(mutex_);
    settle(nullptr);
  }

 protected:
  void* take(std::int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    refused_.clear();
    void* const block = blocks_.take(static_cast<std::size_t>(bytes), [this] { settle(nullptr); });
    if (!block && refused_ != "out of memory") settle(refused_.c_str());
    return block;
  }
  void give(void* block) noexcept override { blocks_.give(block); }

 private:
  static constexpr std::size_t kPlaces = 4096;
  static constexpr std::size_t kStaging = 1 << 20;  // bytes of pinned memory for what is written

  struct Launched {
    const Op* op = nullptr;
    Site site;
  };

  static void require(const char* error) {
    if (error) throw DeviceError(error);
  }

  // A copy that stays until the stream has read it: the staging memory is used again after the next wait.
  const void* staged_copy(const void* from, std::size_t bytes) {
    if (staged_ + bytes > kStaging) settle(nullptr);
    char* const place = staging_ + staged_;
    std::memcpy(place, from, bytes);
    staged_ += bytes;
    return place;
  }

  void* new_block(std::size_t bytes) {
    void* block = nullptr;
    const char* const error = runtime_->allocate(bytes, &block);
    if (error) refused_ = error;
    return error ? nullptr : block;
  }

  // Waits, and throws the first fault since the last time, or else the error of the device: `error`, if there is one already.
  // REQUIRES: mutex_ is held.
  void settle(const char* error) {
    const char* const late = runtime_->synchronize(stream_);
    const std::size_t used = std::exchange(used_, 0);
    staged_ = 0;
    for (std::size_t i = 0; i < used; ++i) {
      if (!faults_[i].what.load()) continue;
      const std::string text = fmt::format("{} ({})", cuda::fault_text(faults_[i]), faults_[i].value.load());
      for (std::size_t k = i; k < used; ++k) new (&faults_[k]) KernelFault;
      throw ExecutionError(error_text(launched_[i].op->name, text, launched_[i].site));
    }
    if (late && !error) error = late;
    if (!error) return;
    const Launched last = used > 0 ? launched_[used - 1] : Launched{};
    throw ExecutionError(
        error_text(last.op ? last.op->name : name_.c_str(),
                   fmt::format("{}: {}; one of the {} ops since the last synchronisation failed, and this is the last of them "
                               "(TAPEDECK_SYNC=1 finds the op)",
                               name_, error, used),
                   last.site));
  }

  const std::string name_;
  const std::shared_ptr<cuda::DeviceRuntime> runtime_;
  cuda::Stream stream_ = nullptr;
  KernelFault* faults_ = nullptr;  // kPlaces of them
  char* staging_ = nullptr;        // kStaging bytes
  std::size_t staged_ = 0;         // of them, since the last wait
  std::vector<Launched> launched_;
  std::size_t used_ = 0;
  BlockCache blocks_;
  std::string refused_;  // the error of the last allocation
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
