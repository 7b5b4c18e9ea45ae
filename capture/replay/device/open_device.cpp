#include <tapedeck/capture/replay/device/open_device.h>

#include <tapedeck/engine/ir/error.h>

#include <charconv>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

namespace tapedeck {

namespace {

std::shared_ptr<kernels::cuda::DeviceRuntime>& of_test() {
  static std::shared_ptr<kernels::cuda::DeviceRuntime> runtime;
  return runtime;
}

// The number behind "cuda:". -1 if the name is not of this form.
int cuda_number(std::string_view name) {
  if (name == "cuda") return 0;
  if (!name.starts_with("cuda:")) return -1;
  name.remove_prefix(5);
  int number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : -1;
}

void check_name(const std::string& name) {
  if (cuda_number(name) < 0) throw UsageError("no device '" + name + "' (devices: cpu, cuda, cuda:1)");
}

}  // namespace

std::shared_ptr<kernels::cuda::DeviceRuntime> open_device(const std::string& name) {
  if (name == "cpu") return nullptr;
  check_name(name);
  if (of_test()) return of_test();
  std::string why;
  std::shared_ptr<kernels::cuda::DeviceRuntime> runtime = kernels::cuda::cuda_runtime(cuda_number(name), &why);
  if (!runtime) throw DeviceError(why);
  return runtime;
}

// The program keeps the runtimes that were asked for, because callers get references to them.
const kernels::cuda::DeviceKernels& kernels_of_device(const std::string& name) {
  check_name(name);
  if (of_test()) return *of_test();
  static std::mutex mutex;
  static std::map<int, std::shared_ptr<kernels::cuda::DeviceRuntime>> runtimes;
  const std::lock_guard lock(mutex);
  std::shared_ptr<kernels::cuda::DeviceRuntime>& runtime = runtimes[cuda_number(name)];
  std::string why;
  if (!runtime) runtime = kernels::cuda::cuda_runtime(cuda_number(name), &why);
  if (runtime) return *runtime;
  return kernels::cuda::linked_kernels();
}

ScopedDevice::ScopedDevice(std::shared_ptr<kernels::cuda::DeviceRuntime> runtime)
    : before_(std::exchange(of_test(), std::move(runtime))) {}
ScopedDevice::~ScopedDevice() { of_test() = std::move(before_); }

}  // namespace tapedeck
