// The real DeviceRuntime, on the CUDA runtime. Without CUDA in the build there is none.
#include <tapedeck/kernels/cuda/device_runtime.h>

#if TAPEDECK_HAS_CUDA
#include <tapedeck/kernels/cuda/current_device.h>
#endif

namespace tapedeck::kernels::cuda {

namespace {

int capability_of(int device) {
  DeviceProperties properties;
  return device_properties(device, &properties) ? 0 : properties.sm;
}

class LinkedKernels final : public DeviceKernels {
 public:
  const KernelEntry* kernel(std::string_view op) const override {
    const KernelEntry* entry = find_kernel(op);
#if TAPEDECK_HAS_CUDA
    if (entry && !entry->kernel) return nullptr;
#endif
    return entry;
  }
  std::int64_t workspace(const KernelEntry& entry, const KernelCall& call) const override {
    return entry.workspace ? entry.workspace(call) : 0;
  }
  int compute_capability() const override { return cuda_status().available ? capability_of(0) : 0; }
};

}  // namespace

const DeviceKernels& linked_kernels() {
  static const LinkedKernels kernels;
  return kernels;
}

#if TAPEDECK_HAS_CUDA

namespace {

cudaStream_t stream_of(Stream stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t event_of(Event event) { return static_cast<cudaEvent_t>(event); }

class CudaRuntime final : public DeviceRuntime {
 public:
  explicit CudaRuntime(int device) : device_(device) {}

  const KernelEntry* kernel(std::string_view op) const override { return linked_kernels().kernel(op); }
  std::int64_t workspace(const KernelEntry& entry, const KernelCall& call) const override {
    const CurrentDevice on(device_);  // a rule may ask the device how many multiprocessors it has
    return linked_kernels().workspace(entry, call);
  }
  int compute_capability() const override { return capability_of(device_); }

  const char* allocate(std::size_t bytes, void** memory) override {
    return here([&] { return cudaMalloc(memory, bytes); });
  }
  const char* free(void* memory) override {
    return here([&] { return cudaFree(memory); });
  }
  const char* allocate_pinned(std::size_t bytes, void** memory) override {
    return here([&] { return cudaHostAlloc(memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable); });
  }
  const char* free_pinned(void* memory) override {
    return here([&] { return cudaFreeHost(memory); });
  }
  const char* memory_info(std::size_t* free_bytes, std::size_t* total_bytes) override {
    return here([&] { return cudaMemGetInfo(free_bytes, total_bytes); });
  }

  const char* create_stream(Stream* stream) override {
    return here([&] { return cudaStreamCreateWithFlags(reinterpret_cast<cudaStream_t*>(stream), cudaStreamNonBlocking); });
  }
  const char* destroy_stream(Stream stream) override {
    return here([&] { return cudaStreamDestroy(stream_of(stream)); });
  }
  const char* synchronize(Stream stream) override {
    return here([&] { return cudaStreamSynchronize(stream_of(stream)); });
  }
  const char* copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream) override {
    return copy(to, from, bytes, cudaMemcpyHostToDevice, stream);
  }
  const char* copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream) override {
    return copy(to, from, bytes, cudaMemcpyDeviceToHost, stream);
  }
  const char* copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) override {
    return copy(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
  }
  const char* fill(void* to, int byte, std::size_t bytes, Stream stream) override {
    return here([&] { return cudaMemsetAsync(to, byte, bytes, stream_of(stream)); });
  }

  const char* create_event(Event* event) override {
    return here([&] { return cudaEventCreateWithFlags(reinterpret_cast<cudaEvent_t*>(event), cudaEventDisableTiming); });
  }
  const char* destroy_event(Event event) override {
    return here([&] { return cudaEventDestroy(event_of(event)); });
  }
  const char* record(Event event, Stream stream) override {
    return here([&] { return cudaEventRecord(event_of(event), stream_of(stream)); });
  }
  const char* wait_on_device(Stream stream, Event event) override {
    return here([&] { return cudaStreamWaitEvent(stream_of(stream), event_of(event), 0); });
  }
  const char* wait_on_host(Event event) override {
    return here([&] { return cudaEventSynchronize(event_of(event)); });
  }
  const char* is_done(Event event, bool* done) override {
    return here([&] {
      const cudaError_t state = cudaEventQuery(event_of(event));
      *done = state == cudaSuccess;
      if (state != cudaErrorNotReady) return state;
      cudaGetLastError();  // clears it: an event that is not done is no error
      return cudaSuccess;
    });
  }

  void run(Kernel kernel, const KernelCall& call) override {
    const CurrentDevice on(device_);
    if (on.error() != cudaSuccess) return call.fault->report(cudaGetErrorString(on.error()), on.error());
    kernel(call);
  }

  const char* begin_capture(Stream stream) override {
    return here([&] { return cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeThreadLocal); });
  }
  const char* end_capture(Stream stream, Graph* graph) override {
    return here([&] { return cudaStreamEndCapture(stream_of(stream), reinterpret_cast<cudaGraph_t*>(graph)); });
  }
  const char* node_count(Graph graph, std::size_t* nodes) override {
    return here([&] { return cudaGraphGetNodes(static_cast<cudaGraph_t>(graph), nullptr, nodes); });
  }
  const char* instantiate(Graph graph, GraphExec* exec) override {
    return here(
        [&] { return cudaGraphInstantiate(reinterpret_cast<cudaGraphExec_t*>(exec), static_cast<cudaGraph_t>(graph), 0); });
  }
  const char* upload(GraphExec exec, Stream stream) override {
    return here([&] { return cudaGraphUpload(static_cast<cudaGraphExec_t>(exec), stream_of(stream)); });
  }
  const char* launch(GraphExec exec, Stream stream) override {
    return here([&] { return cudaGraphLaunch(static_cast<cudaGraphExec_t>(exec), stream_of(stream)); });
  }
  const char* destroy_graph(Graph graph) override {
    return here([&] { return cudaGraphDestroy(static_cast<cudaGraph_t>(graph)); });
  }
  const char* destroy_exec(GraphExec exec) override {
    return here([&] { return cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(exec)); });
  }

 private:
  template <class F>
  const char* here(const F& f) const {
    const CurrentDevice on(device_);
    return text_of(on.error() == cudaSuccess ? f() : on.error());
  }
  const char* copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, Stream stream) const {
    return here([&] { return cudaMemcpyAsync(to, from, bytes, kind, stream_of(stream)); });
  }

  const int device_;
};

}  // namespace

std::shared_ptr<DeviceRuntime> cuda_runtime(int device, std::string* why) {
  const CudaStatus& status = cuda_status();
  if (!status.available) return *why = status.reason, nullptr;
  if (device >= 0 && device < status.device_count) return std::make_shared<CudaRuntime>(device);
  *why = "no CUDA device " + std::to_string(device) + ": this machine has " + std::to_string(status.device_count);
  return nullptr;
}

#else

std::shared_ptr<DeviceRuntime> cuda_runtime(int, std::string* why) { return *why = cuda_status().reason, nullptr; }

#endif

}  // namespace tapedeck::kernels::cuda
