// Replays a Plan: one arena, no allocation, no locks and no exceptions on the hot path.
#pragma once

#include <tapedeck/kernels/export.h>
#include <tapedeck/capture/plan.h>
#include <tapedeck/capture/timeline.h>
#include <tapedeck/engine/tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

class ReplayPool;

// Which state values of a pool's members are one.
enum class StateSharing : std::uint8_t {
  by_name,     // those of one name: they must agree in type
  by_tensor,   // those bound to the same tensor, whatever their names (captured steps)
};

struct ExecutorOptions {
  int threads = 1;                 // 1 = serial walk; 0 = as many as the machine has
  std::string device = "cpu";      // "cuda": DeviceError unless built in and present
  std::shared_ptr<ReplayPool> pool = nullptr;   // one arena and one set of state for several executors (replay_pool.h)
  std::string name = {};           // in messages and in a pool's tables; empty: the graph's
  StateSharing state = StateSharing::by_name;
};

struct DimTable;

// What Executor::reshape() allows.
struct ReshapeOptions {
  bool partial_shaping = false;    // inputs that were not named may change, where the named ones make them
  bool allow_up_sizing = false;    // what becomes larger gets fresh memory
  const DimTable* dims = nullptr;  // how attributes follow sizes (dims.h); without it inference alone, and what it cannot know is an error
};

// Owns the arena, and copies of everything persistent unless a tensor is bound; in a pool both are shared with its members. Not thread
// safe: a second run() while one is under way is refused with ExecutionError. A failure that strikes once state has been written tears the
// state values that the graph updates: no executor that has them runs until they are set again.
class Executor {
 public:
  explicit Executor(Plan plan, const ExecutorOptions& options = {});
  ~Executor();
  Executor(Executor&&) noexcept;

  const Plan& plan() const;

  // Inputs by name or index; copied in (dtype and shape must agree: TypeError), and kept until set again.
  void set_input(const std::string& name, const Tensor& value);
  void set_input(int index, const Tensor& value);
  // State by name: copied in.
  void set_state(const std::string& name, const Tensor& value);
  // State that *is* the user's tensor: read and written in place, its version bumps. The tensor must be dense.
  void bind_state(const std::string& name, const Tensor& value);
  Tensor state(const std::string& name) const;                   // a copy
  std::vector<std::string> state_names() const;
  std::vector<std::string> input_names() const;

  // One step. Inputs and state never set are an ExecutionError naming them. Rethrows the error of the lowest node.
  void run();
  void run(Timeline* timeline);                                  // likewise, and notes when each node ran. Its first run allocates the slices
  // The caller's own copies, in the order of `return`; overwritten by nobody.
  std::vector<Tensor> outputs() const;
  Tensor output(const std::string& name) const;

  // Another executor of the same graph with inputs of other sizes, by name, on the same memory: what is as large or smaller lies in the
  // first bytes of the old (inputs, outputs), so either's run overwrites what the other returned and was given; what is larger is fresh.
  // The arena is as large as the larger of the two needs. State is one and the same, whatever happens to either. The plan is fitted where it can be, made anew where it cannot.
  // The two run one after the other: a run while the other is under way is an ExecutionError. Throws TypeError for an unknown input,
  // for what ReshapeOptions does not allow, and wherever inference refuses, naming the node. MXNet's executor.reshape.
  Executor reshape(const std::map<std::string, Type>& inputs, const ReshapeOptions& options = {}) const;
  // Likewise, for a plan at hand (fit_plan.h) of the same graph at other types.
  Executor reshape(Plan plan, const ReshapeOptions& options = {}) const;

  // The most bytes the replay held at once, counted by its allocator while running: equals plan().peak_bytes. In a family or a pool: of all.
  std::int64_t observed_peak_bytes() const;
  // Copies of outputs and state views handed out are the caller's and are not counted.

 private:
  struct Impl;
  explicit Executor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Runs the nodes of `captured` one by one through eager dispatch, unplanned and unoptimized. The oracle of replay.
struct EagerResult {
  std::vector<Tensor> outputs;
  std::vector<Tensor> state;     // by state index, after the updates
};
EagerResult run_eagerly(const Graph& captured, const std::vector<Tensor>& inputs, const std::vector<Tensor>& state);

// Values for a replay that lacks them: floats uniform in [-1,1) from the seed and the name, integers and bools zero.
Tensor default_value(const Type& type, std::uint64_t seed, const std::string& name);

}  // namespace tapedeck
