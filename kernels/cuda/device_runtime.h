// One device as replays and eager code see it: its kernels, its memory, copies, streams, events and graphs. cuda_runtime()
// gives the real one; tests give a fake that records every call (tests/capture/replay/device/fake_runtime.h).
//
// Functions that return `const char*` give null on success, otherwise NVIDIA's text for the error (a string that lives for
// ever). Copies and fills run on the stream, after all work that was given to it before; the host memory must stay valid until
// the stream has run them. All functions work whatever device is current in the calling thread, and leave it current.
// Thread safety: a runtime may be used by several threads; a stream, an event or a graph by one thread at a time. But a thread
// may wait for an event while another one uses the stream of the event.
#pragma once

#include <tapedeck/kernels/cuda/kernel_table.h>
#include <tapedeck/kernels/cuda/runtime.h>
#include <tapedeck/kernels/export.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

// The kernels of a device, by op.
class DeviceKernels {
 public:
  virtual ~DeviceKernels() = default;
  virtual const KernelEntry* kernel(std::string_view op) const = 0;  // null: the op has none
  // The bytes of workspace that this kernel wants for the call. Reads sizes, strides, dtypes and attributes only.
  virtual std::int64_t workspace(const KernelEntry& entry, const KernelCall& call) const = 0;
  // The compute capability of the device, 90 for 9.0: kernels of fused nodes are compiled for it at run time. 0: the device
  // takes no such kernels.
  virtual int compute_capability() const { return 0; }
};

// The kernels of kernel_table.h. Without CUDA in the build the entries are there, and their kernels are null.
const DeviceKernels& linked_kernels();

using Event = void*;      // cudaEvent_t: a place in the work of a stream
using Graph = void*;      // cudaGraph_t: a captured sequence of work
using GraphExec = void*;  // cudaGraphExec_t: a graph that can be launched

class DeviceRuntime : public DeviceKernels {
 public:
  // ---- memory ----
  virtual const char* allocate(std::size_t bytes, void** memory) = 0;  // on the device, aligned to at least 256 bytes
  virtual const char* free(void* memory) = 0;
  // Memory of the host that the device can read and write at the same address; copies from and to it do not stop the host.
  virtual const char* allocate_pinned(std::size_t bytes, void** memory) = 0;
  virtual const char* free_pinned(void* memory) = 0;
  virtual const char* memory_info(std::size_t* free_bytes, std::size_t* total_bytes) = 0;

  // ---- streams ----
  virtual const char* create_stream(Stream* stream) = 0;  // never waits for the default stream
  virtual const char* destroy_stream(Stream stream) = 0;
  virtual const char* synchronize(Stream stream) = 0;  // waits; also reports errors of earlier work on the device
  virtual const char* copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream) = 0;
  virtual const char* copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream) = 0;
  virtual const char* copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) = 0;
  virtual const char* fill(void* to, int byte, std::size_t bytes, Stream stream) = 0;

  // ---- events ----
  // An event stands behind all work that its stream had been given at the last record(). It is done when that work has run. An
  // event that was never recorded is done.
  virtual const char* create_event(Event* event) = 0;
  virtual const char* destroy_event(Event event) = 0;
  virtual const char* record(Event event, Stream stream) = 0;
  // Work that the stream is given from now on runs once the event is done. A later record() changes nothing for this stream.
  virtual const char* wait_on_device(Stream stream, Event event) = 0;
  virtual const char* wait_on_host(Event event) = 0;         // also reports errors of earlier work on the device
  virtual const char* is_done(Event event, bool* done) = 0;  // does not wait

  // ---- kernels ----
  // Gives the kernel to call.stream. An error of the launch itself is reported in call.fault before this returns.
  virtual void run(Kernel kernel, const KernelCall& call) = 0;

  // ---- graphs ----
  // Between begin and end, work that this thread gives to the stream becomes nodes of a graph and does not run. Allocating,
  // freeing and waiting are errors meanwhile. end_capture() ends the capture in any case; after an error there is no graph.
  virtual const char* begin_capture(Stream stream) = 0;
  virtual const char* end_capture(Stream stream, Graph* graph) = 0;
  virtual const char* node_count(Graph graph, std::size_t* nodes) = 0;
  virtual const char* instantiate(Graph graph, GraphExec* exec) = 0;
  virtual const char* upload(GraphExec exec, Stream stream) = 0;  // so that the first launch pays for nothing
  virtual const char* launch(GraphExec exec, Stream stream) = 0;
  virtual const char* destroy_graph(Graph graph) = 0;
  virtual const char* destroy_exec(GraphExec exec) = 0;
};

// The runtime of one device. Null if there is no such device; then `why` is one line that says so.
std::shared_ptr<DeviceRuntime> cuda_runtime(int device, std::string* why);

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
