// A device for tests: its memory lies on the host, its kernels are those of the CPU, and nothing runs before the host waits for
// it. So a copy that is read too early, or whose source changes too early, shows in the results. New memory holds 0xFF.
//
// The fake notes each breach of the rules that a real device has, in problems(): bytes that are in no allocation of the device,
// or were freed; operands of kernels in memory of the host; calls that are not allowed while a stream is captured; memory that
// is freed while work is waiting; graphs that are launched after their memory was freed; memory that was never given back;
// races.
//
// A race is two pieces of work on two streams that use the same bytes, one of them writing, and that nothing orders. Each piece
// has a clock: for every stream, the number of its work that has run before this piece begins, whatever the device does.
//
//     stream 0: write a (clock 0 0)   record e
//     stream 1: wait for e            read a (clock 1 0): in order      without the wait (clock 0 0): a race
//
// A wait of the host orders the work that the same thread gives afterwards. All functions may be called by several threads.
#pragma once

#include <tapedeck/engine/eager/eager_device.h>
#include <tapedeck/kernels/cuda/device_runtime.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace tapedeck::test {

class FakeRuntime final : public kernels::cuda::DeviceRuntime {
 public:
  using Stream = kernels::cuda::Stream;
  using Event = kernels::cuda::Event;
  using Graph = kernels::cuda::Graph;
  using GraphExec = kernels::cuda::GraphExec;

  // ---- to be set by the test ----
  std::set<std::string, std::less<>> missing;   // ops that this device has no kernel for
  std::string refused_in_capture;               // an op whose launch fails while the stream is captured
  std::string breaks;                           // an op after which the device is lost
  int capability = 0;                           // not 0: kernels of fused nodes are compiled at run time
  std::size_t capacity = std::size_t{1} << 30;  // bytes of the device

  // ---- what has happened ----
  const std::vector<std::string>& problems() const { return problems_; }
  struct Counts {
    std::int64_t allocations = 0, frees = 0, pinned = 0, synchronizations = 0, launches = 0, instantiations = 0, captures = 0;
    std::int64_t streams = 0;       // that were made
    std::int64_t records = 0;       // of events
    std::int64_t stream_waits = 0;  // of a stream for an event
    std::int64_t event_waits = 0;   // of the host for an event
    std::int64_t kernels = 0;       // that have run, in graphs or not
    std::int64_t uploads = 0, downloads = 0;
    bool operator==(const Counts&) const = default;
  } counts;
  std::int64_t bytes_in_use() const;
  bool at_rest() const;          // nothing is allocated, no stream, no event and no graph exists
  std::int64_t waiting() const;  // pieces of work that have not run

  // ---- DeviceRuntime ----
  const kernels::cuda::KernelEntry* kernel(std::string_view op) const override;
  std::int64_t workspace(const kernels::cuda::KernelEntry& entry, const KernelCall& call) const override;
  int compute_capability() const override { return capability; }
  const char* allocate(std::size_t bytes, void** memory) override;
  const char* free(void* memory) override;
  const char* allocate_pinned(std::size_t bytes, void** memory) override;
  const char* free_pinned(void* memory) override;
  const char* memory_info(std::size_t* free_bytes, std::size_t* total_bytes) override;
  const char* create_stream(Stream* stream) override;
  const char* destroy_stream(Stream stream) override;
  const char* synchronize(Stream stream) override;
  const char* copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream) override;
  const char* copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream) override;
  const char* copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) override;
  const char* fill(void* to, int byte, std::size_t bytes, Stream stream) override;
  const char* create_event(Event* event) override;
  const char* destroy_event(Event event) override;
  const char* record(Event event, Stream stream) override;
  const char* wait_on_device(Stream stream, Event event) override;
  const char* wait_on_host(Event event) override;
  const char* is_done(Event event, bool* done) override;
  void run(Kernel kernel, const KernelCall& call) override;
  const char* begin_capture(Stream stream) override;
  const char* end_capture(Stream stream, Graph* graph) override;
  const char* node_count(Graph graph, std::size_t* nodes) override;
  const char* instantiate(Graph graph, GraphExec* exec) override;
  const char* upload(GraphExec exec, Stream stream) override;
  const char* launch(GraphExec exec, Stream stream) override;
  const char* destroy_graph(Graph graph) override;
  const char* destroy_exec(GraphExec exec) override;

 private:
  struct Range {
    const char* first = nullptr;
    std::size_t bytes = 0;
  };
  struct Work {
    std::string what;
    std::vector<Range> reads, writes;  // on the device
    std::function<const char*()> run;
  };
  using Clock = std::vector<std::int64_t>;  // by number of a stream
  struct Queue {
    std::size_t number = 0;  // no two streams have the same, also if one is gone
    std::deque<Work> waiting;
    std::int64_t given = 0, ran = 0;  // pieces of work
    Clock clock;                      // of the next piece
    bool capturing = false;
    std::thread::id capturer;
    std::vector<Work> captured;
  };
  struct Place {              // of an event
    Stream stream = nullptr;  // null: never recorded
    std::int64_t given = 0;
    Clock clock;
  };
  struct Access {
    std::string what;
    Range range;
    bool writes = false;
    std::size_t stream = 0;
    std::int64_t number = 0;  // of the work in its stream
  };
  struct Recording {
    std::vector<Work> nodes;
  };
  using Blocks = std::map<const char*, std::vector<char>>;

  const char* problem(const std::string& text);
  const char* refuse_in_capture(const char* what);
  void give(Queue& queue, Work work);
  void check_ranges(const Work& work);
  void check_order(const Queue& queue, const Work& work);
  void note_access(const Queue& queue, const std::string& what, const Range& range, bool writes);
  void run_until(Queue& queue, std::int64_t given);
  bool is_in(const Blocks& blocks, const Range& range) const;
  static Range range_of(const View& view);
  static void join(Clock& clock, const Clock& other);

  mutable std::recursive_mutex mutex_;
  std::vector<std::string> problems_;
  Blocks device_, pinned_;
  std::vector<std::vector<char>> freed_too_early_;  // stay, because the work that waits reads them
  std::size_t used_ = 0;
  std::map<Stream, std::unique_ptr<Queue>> streams_;
  std::vector<std::unique_ptr<Queue>> gone_streams_;  // stay, so that no stream gets the address of another
  std::map<Event, std::unique_ptr<Place>> events_;
  std::map<std::thread::id, Clock> host_;                // the work that each thread has seen the end of
  std::map<const char*, std::vector<Access>> accesses_;  // by the block of the device
  std::map<void*, std::unique_ptr<Recording>> graphs_, execs_;
  const char* lost_ = nullptr;
  mutable std::map<std::string, kernels::cuda::KernelEntry, std::less<>> entries_;
};

// A device of eager code over the fake, named "cuda". Each op waits, because the fake reads the attributes of an op when its
// stream runs it, and the attributes of an eager call are gone by then. Replays on the same fake do not wait.
std::unique_ptr<EagerDevice> waiting_eager_device(std::shared_ptr<FakeRuntime> fake);

}  // namespace tapedeck::test
