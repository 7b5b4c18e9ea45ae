// Replays a Plan: one arena, no allocation and no exceptions on the hot path, and no locks but one. A step takes the mutex of
// its pool once if it writes state while a member of the pool returns state, or has state bound to the same bytes by another
// tensor: then the results of that member are saved.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/device/device_counters.h>
#include <tapedeck/capture/replay/run_options.h>
#include <tapedeck/capture/replay/time_travel.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

class ReplayPool;

// Which state values of the members of a pool are one value.
enum class StateSharing : std::uint8_t {
  by_name,    // values of the same name; their types must agree
  by_tensor,  // values bound to the same tensor, under any names (captured steps)
};

struct ExecutorOptions {
  int threads = 0;                             // 1 = serial walk; 0 = thread_count(), as eager ops (engine/eager/threads.h)
  std::string device = "cpu";                  // or "cuda", "cuda:1": DeviceError unless built in and present
  std::shared_ptr<ReplayPool> pool = nullptr;  // one arena and one set of state for several executors (replay_pool.h)
  std::string name = {};                       // in messages and in the tables of a pool; empty: the name of the graph
  StateSharing state = StateSharing::by_name;
  CudaGraphs cuda_graphs = CudaGraphs::automatic;  // read on a device only
  bool results_on_device = false;                  // outputs() and output() give tensors of the device; read on a device only
};

struct DimTable;

// The changes that Executor::reshape() allows.
struct ReshapeOptions {
  bool partial_shaping = false;    // inputs that were not named may change if the named ones demand it
  bool allow_up_sizing = false;    // a value that becomes larger gets fresh memory
  const DimTable* dims = nullptr;  // how attributes follow sizes (sizes/dim_table.h); without it sizes are inferred, and
                                   // a size that inference cannot know is an error
};

// Owns the arena, and copies of inputs, constants, results and state that is not bound to a tensor. On a device all of these
// are there, and beside them lie copies on the host of all but the arena; a step is always a whole one, so the calls for steps
// in parts, time travel, monitors and reshape() are UsageErrors. In a pool the arena and the state are shared with the other
// members. Not thread safe: a second run() while one is under way is refused with an ExecutionError. A step that fails after it
// has written state tears the state values that the graph updates: no executor that has these values runs until they are set
// again.
class Executor {
 public:
  explicit Executor(Plan plan, const ExecutorOptions& options = {});
  ~Executor();
  Executor(Executor&&) noexcept;

  const Plan& plan() const;

  // Inputs by name or index. The tensor is copied in, and the copy is kept until the input is set again. TypeError if dtype or
  // shape differ. The tensor may be on the host or on a device; from the executor's own device it is copied there, without a
  // wait.
  void set_input(const std::string& name, const Tensor& value);
  void set_input(int index, const Tensor& value);
  // State by name. The tensor is copied in.
  void set_state(const std::string& name, const Tensor& value);
  // From now on the state *is* the user's tensor, which is read and written in place. The version of the tensor rises with
  // every run, or part of a run, that has written it. The tensor must be dense, and no other state of a member may be bound to
  // its bytes (UsageError). Results and values that lie in the tensor are refused once the caller has written the tensor, or
  // another tensor on its storage (versions count writes to the storage). A refused call changes nothing. A tensor of a device
  // can be bound by an executor on that device only (DeviceError); it is used where it lies, and steps run in the order of the
  // ops of eager code.
  void bind_state(const std::string& name, const Tensor& value);
  Tensor state(const std::string& name) const;  // a copy
  std::vector<std::string> state_names() const;
  std::vector<std::string> input_names() const;

  // One step. ExecutionError that names the inputs and state that were never set.
  // A kernel may report a fault; a kernel, a function given to on_host and a monitor may throw. run() throws once, for the
  // lowest node at fault: an ExecutionError that names the node and its call site, with the original exception nested in it
  // (std::rethrow_if_nested). There are no outputs then. The executor can run again, unless its state is torn.
  void run();
  std::vector<Tensor> run_and_outputs();  // run() and outputs(); no executor that shares the memory comes in between
  void run(Timeline* timeline);           // as run(), and notes when each node ran
  void run(const RunOptions& options);

  // On a device: gives one step to it, and returns before the step has run, so that the caller can prepare the next one.
  // set_input() does not wait; launch() waits only while the device has not copied the inputs of the launch before the last.
  // Calls that read results, or read or give state, and run() wait for the launched steps first, and throw their error: the
  // fault of the lowest node among them. It is run() on the CPU, in the first step, if state is bound to a tensor, if a node
  // runs on the host, with CudaGraphs::off and with TAPEDECK_SYNC.
  void launch();
  // Waits for the steps that were launched, and throws their error. Errors that no call has asked for end with the executor.
  void synchronize();

  // ---- a step in parts ----
  // The first part begins a step. The step is under way until all its nodes have run; then state and outputs are as after
  // run(), bit for bit. Meanwhile run() and set_state() are refused, an input can be set until a node has read it, and an
  // output can be read once its node has run. A part that fails or is cancelled ends the step. A run of another executor on the
  // same memory ends the step too, or is refused if the step has written state. The caller may write a bound tensor between two
  // parts. If nodes have used its old bytes and others are still to read them, the next part throws an ExecutionError, and the
  // step ends.

  // The nodes of one phase on all threads: forward, then backward, then update. Any other order is an ExecutionError that names
  // the phase that is due; but forward may come again, which drops the step and begins a new one. Head gradients are inputs of
  // the graph (gradient(): heads_as_inputs), to be set in between. A node runs no earlier than the nodes that it reads from
  // (analysis/phases.h). UsageError that names the nodes if a segment would have to stop in the middle: plan with
  // PlanOptions::split_phases.
  void run(Phase phase, const RunOptions& options = {});
  // The next n nodes, one after the other, in the order in which one thread runs the plan. Returns how many are left of the
  // step; at its end 0. MXNet's PartialForward.
  std::int32_t step(std::int32_t n = 1);
  // The next nodes in that order, up to and including the node that makes the value. UsageError if that node has run already.
  std::int32_t run_to(const std::string& value);
  void resume(const RunOptions& options = {});  // the rest, on all threads. ExecutionError if no step is under way
  void restart();  // drops the step. If it had written state, the executor is torn, or gets it back (keep_steps)
  std::int32_t nodes_left() const;  // of the step under way; 0 if there is none
  // As run_to(), up to and including the first node at which one of the breakpoints stops, or to the end of the step.
  // UsageError for a node that the plan does not have and for a name that matches nothing.
  Stop run_until(const Breakpoints& breakpoints);
  // A copy of any value of plan().graph, by its name or the name of an output, while its bytes are there: from the moment when
  // its node has run until its bytes are written again. The ExecutionError names the reason if it is not there: the node that
  // is due, the node that overwrote it, a run of another executor on the same memory, state that was set anew, a write by the
  // caller to a bound tensor, or TAPEDECK_POISON.
  Tensor value(const std::string& name) const;

  // ---- looking at values that are gone, and going back ----
  // From now on every step in parts keeps what inspect() and back() need: a copy of each state value, made just before the step
  // overwrites it, and the results of nodes with effects. They are there until the next step begins. A kept step that ends in
  // the middle (restart(), an error, a cancelled part) gives the state back instead of tearing it. ExecutionError in the middle
  // of a step. run() keeps nothing: step(0) begins a step, and resume() runs it.
  void keep_steps(bool keep = true);
  std::int64_t kept_bytes() const;  // that these copies hold now; observed_peak_bytes() does not count them
  // A copy of any value that the step under way, or the last step, has computed, also if its bytes are gone: then it is
  // computed again from what is there, in memory of its own, bit for bit. The arena, the state and the step stay as they are,
  // and nodes with effects do not run. It takes no longer than the step. State has the value from before the step.
  // ExecutionError names the node that is still to run, or the operand that is needed and is gone (state that the step has
  // overwritten, or results of an effect, unless keep_steps() was called). Values inside the bodies of loops have no names here
  // (UsageError).
  Inspected inspect(const std::string& name) const;
  Inspected inspect(ValueId value) const;  // of plan().graph
  // Goes back in the step under way, or in the last step: state is as before the step, and the nodes run again in the order of
  // step(), but for the last n of those that had run. Returns how many are left of the step. Nodes with effects do not run
  // twice; monitors see the other nodes again. ExecutionError, and nothing changes, if the step is not kept, or if state or an
  // input was written from outside since it began.
  std::int32_t back(std::int32_t n = 1);

  // From now on shows `fn` the results of every node whose op, module path or result has a name that the pattern matches ('*':
  // any characters, '?': one). Neither plan nor bits change; segments without such a node run as before. UsageError if nothing
  // matches. Returns a number for remove_monitor().
  std::int32_t monitor(const std::string& pattern, MonitorFunction fn, const MonitorOptions& options = {});
  void remove_monitor(std::int32_t id);

  // Copies that belong to the caller, in the order of `return`. ExecutionError for a result that lies in bound state (the graph
  // returns the updated state) if the caller has written that tensor since.
  std::vector<Tensor> outputs() const;
  Tensor output(const std::string& name) const;

  // Another executor of the same graph with inputs of other sizes, by name, on the same memory. Inputs and outputs that are not
  // larger lie in the first bytes of the old buffers, so a run of either executor overwrites the inputs and results of the
  // other; larger ones are fresh. The arena is as large as the larger of the two plans needs. State is one and the same. The
  // old plan is fitted to the sizes if possible; otherwise a new plan is made. The two run one after the other: a run while the
  // other is under way is an ExecutionError, and a run that does not come to its end takes the results of the other along.
  // Throws TypeError for an unknown input, for a change that ReshapeOptions does not allow, and for sizes that inference
  // refuses, with the node. MXNet's executor.reshape.
  Executor reshape(const std::map<std::string, Type>& inputs, const ReshapeOptions& options = {}) const;
  // The same, for a plan of the same graph at other types that is there already (planner/fit_plan_to_sizes.h).
  Executor reshape(Plan plan, const ReshapeOptions& options = {}) const;

  // The most bytes that the replay held at once, counted by its allocator: equals plan().peak_bytes. In a family or a pool: the
  // bytes of all members. Copies of outputs and state belong to the caller and are not counted.
  // On a device: the bytes that are allocated there, which equal planned_device_bytes() (device/device_schedule.h).
  std::int64_t observed_peak_bytes() const;
  DeviceCounters device_counters() const;  // zeros on the CPU

 private:
  struct Impl;
  explicit Executor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Runs the nodes of `captured` one by one through eager dispatch, without a plan and without passes. Replays are compared with
// it.
struct EagerResult {
  std::vector<Tensor> outputs;
  std::vector<Tensor> state;  // by state index, after the updates
};
EagerResult run_eagerly(const Graph& captured, const std::vector<Tensor>& inputs, const std::vector<Tensor>& state);

// A value for a replay that has none: floats uniform in [-1,1) from the seed and the name, integers and bools zero.
Tensor default_value(const Type& type, std::uint64_t seed, const std::string& name);

}  // namespace TAPEDECK_API
