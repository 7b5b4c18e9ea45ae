#include <tapedeck/engine/eager/eager_device.h>

#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/cuda_device.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace tapedeck {

// ---- memory ----

void* EagerDevice::allocate(std::int64_t bytes) {
  void* const block = take(std::max<std::int64_t>(bytes, 1));
  if (!block)
    throw ExecutionError(
        fmt::format("{} has not {} bytes of memory left; tensors there hold {} bytes", name(), bytes, in_use_.load()));
  blocks_.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t now = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::int64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return block;
}

void EagerDevice::release(void* block, std::int64_t bytes) noexcept {
  blocks_.fetch_sub(1, std::memory_order_relaxed);
  in_use_.fetch_sub(bytes, std::memory_order_relaxed);
  give(block);
}

MemoryStats EagerDevice::memory() const noexcept { return {in_use_.load(), peak_.load(), blocks_.load()}; }

void EagerDevice::order_after_ops(kernels::cuda::Stream) {}
void EagerDevice::order_ops_after(kernels::cuda::Stream) {}

// ---- names ----

bool is_device_name(std::string_view name) noexcept {
  const std::size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon), number = colon == std::string_view::npos ? "0" : name.substr(colon + 1);
  const bool digits = !number.empty() && number.size() <= 4 &&
                      std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
  return (kind == "cpu" || kind == "cuda") && digits;
}

namespace {

struct Stand {  // a device that a test has put in the place of another
  std::string name;
  EagerDevice* device = nullptr;
};

Stand& stand() {
  static auto* one = new Stand;
  return *one;
}

int number_of(std::string_view name) {
  const std::size_t colon = name.find(':');
  int number = 0;
  if (colon != std::string_view::npos)
    for (const char c : name.substr(colon + 1)) number = number * 10 + (c - '0');
  return number;
}

}  // namespace

EagerDevice* find_eager_device(std::string_view name) {
  if (!is_device_name(name)) throw UsageError(fmt::format("'{}' is no device: cpu, cpu:1, cuda, cuda:1", name));
  if (name.starts_with("cpu")) return nullptr;
  if (stand().device && stand().name == name) return stand().device;
  static std::mutex mutex;
  static auto* devices = new std::map<int, std::unique_ptr<EagerDevice>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<EagerDevice>& device = (*devices)[number_of(name)];
  if (!device) device = make_cuda_device(number_of(name));
  return device.get();
}

ScopedEagerDevice::ScopedEagerDevice(std::string name, EagerDevice& device)
    : before_name_(std::exchange(stand().name, std::move(name))), before_(std::exchange(stand().device, &device)) {}

ScopedEagerDevice::~ScopedEagerDevice() { stand() = {before_name_, before_}; }

}  // namespace tapedeck
