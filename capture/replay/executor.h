// Replays a Plan: one arena, no allocation and no exceptions on the hot path. No locks either, but for a step that writes state
// while a member of its pool returns state, or has it bound to the same bytes by another tensor: what they returned is saved
// behind the pool's mutex, once a step.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/run_options.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

class ReplayPool;

// Which state values of a pool's members are one.
enum class StateSharing : std::uint8_t {
  by_name,    // those of one name: they must agree in type
  by_tensor,  // those bound to the same tensor, whatever their names (captured steps)
};

struct ExecutorOptions {
  int threads = 1;                             // 1 = serial walk; 0 = as many as the machine has
  std::string device = "cpu";                  // "cuda": DeviceError unless built in and present
  std::shared_ptr<ReplayPool> pool = nullptr;  // one arena and one set of state for several executors (replay_pool.h)
  std::string name = {};                       // in messages and in a pool's tables; empty: the graph's
  StateSharing state = StateSharing::by_name;
};

struct DimTable;

// What Executor::reshape() allows.
struct ReshapeOptions {
  bool partial_shaping = false;    // inputs that were not named may change, where the named ones make them
  bool allow_up_sizing = false;    // what becomes larger gets fresh memory
  const DimTable* dims = nullptr;  // how attributes follow sizes (sizes/dim_table.h); without it inference alone, and what it
                                   // cannot know is an error
};

// Owns the arena, and copies of everything persistent unless a tensor is bound; in a pool both are shared with its members. Not
// thread safe: a second run() while one is under way is refused with ExecutionError. A failure that strikes once state has been
// written tears the state values that the graph updates: no executor that has them runs until they are set again.
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
  // State that *is* the user's tensor: read and written in place; its version bumps with every run, or part of one, that has
  // written it. The tensor must be dense, and no member's other state may be bound to its bytes (UsageError). Results and
  // values that lie in it are refused once the caller has written it, or another tensor on its storage (versions count writes
  // to the storage). What is refused changes nothing.
  void bind_state(const std::string& name, const Tensor& value);
  Tensor state(const std::string& name) const;  // a copy
  std::vector<std::string> state_names() const;
  std::vector<std::string> input_names() const;

  // One step. Inputs and state never set are an ExecutionError naming them.
  // What goes wrong in it - a kernel's fault, or anything that a kernel, a function given to on_host or a monitor throws - is
  // thrown here once, as the ExecutionError of the lowest node, naming node and call site; what was thrown is nested in it
  // (std::rethrow_if_nested). No outputs are handed out then, and the executor can run again, unless it is torn.
  void run();
  std::vector<Tensor> run_and_outputs();  // run() and outputs(), and nobody who shares the memory gets in between
  void run(Timeline* timeline);           // likewise, and notes when each node ran
  void run(const RunOptions& options);

  // ---- a step in parts ----
  // From the first part on a step is under way until all of it has run; then state and outputs are as after run(), bit for bit.
  // Meanwhile run() and set_state() are refused, an input can be set until a node has read it, outputs can be read once they
  // are there. A part that fails or is cancelled ends the step. Executors that share memory drop each other's steps (but for
  // one that has written state). A bound tensor that the caller writes in between is an ExecutionError at the next part, and
  // ends the step, if nodes have used its bytes and others are still to read them.

  // The nodes of one phase on all threads: forward, then backward, then update. ExecutionError naming what is due for any other
  // order; forward again drops the step and begins a new one. Head gradients are inputs of the graph (gradient():
  // heads_as_inputs), to be set in between. A node runs no earlier than what it reads (analysis/phases.h). UsageError naming
  // the nodes if a segment would have to stop in the middle of others: plan with segments split at phases.
  void run(Phase phase, const RunOptions& options = {});
  // The next n nodes, one after the other, in the order in which one thread runs the plan. Returns how many are left; past the
  // end 0. MXNet's PartialForward.
  std::int32_t step(std::int32_t n = 1);
  // Likewise, up to and including the node that makes the value. UsageError if it has run already.
  std::int32_t run_to(const std::string& value);
  void resume(const RunOptions& options = {});  // the rest, on all threads. ExecutionError if no step is under way
  void restart();                               // drops the step. If it had written state, the executor is torn
  std::int32_t nodes_left() const;              // of the step under way; 0 if there is none
  // A copy of any value of plan().graph, by name, while its bytes are there: from when its node has run until something else
  // lies there. ExecutionError naming the node that is due or that overwrote it, or what else took the bytes since: another
  // executor's run on the same memory, state set anew, the caller's writing the tensor that the state is bound to,
  // TAPEDECK_POISON.
  Tensor value(const std::string& name) const;

  // Shows `fn` what nodes make whose op, module path or result bears a name that the pattern matches ('*' any characters, '?'
  // one), in every run from now on. Neither plan nor bits change; segments without such a node run as ever. UsageError if
  // nothing matches. Returns a number for remove_monitor().
  std::int32_t monitor(const std::string& pattern, MonitorFunction fn, const MonitorOptions& options = {});
  void remove_monitor(std::int32_t id);

  // The caller's own copies, in the order of `return`; overwritten by nobody. ExecutionError for a result that lay in bound
  // state (it returns the state as it was updated) and was not asked for before the caller wrote that tensor.
  std::vector<Tensor> outputs() const;
  Tensor output(const std::string& name) const;

  // Another executor of the same graph with inputs of other sizes, by name, on the same memory: what is as large or smaller
  // lies in the first bytes of the old (inputs, outputs), so either's run overwrites what the other returned and was given;
  // what is larger is fresh. The arena is as large as the larger of the two needs. State is one and the same, whatever happens
  // to either. The plan is fitted where it can be, made anew where it cannot. The two run one after the other: a run while the
  // other is under way is an ExecutionError; one that does not come to its end takes the other's results along. Throws
  // TypeError for an unknown input, for what ReshapeOptions does not allow, and wherever inference refuses, naming the node.
  // MXNet's executor.reshape.
  Executor reshape(const std::map<std::string, Type>& inputs, const ReshapeOptions& options = {}) const;
  // Likewise, for a plan at hand (planner/fit_plan_to_sizes.h) of the same graph at other types.
  Executor reshape(Plan plan, const ReshapeOptions& options = {}) const;

  // The most bytes the replay held at once, counted by its allocator while running: equals plan().peak_bytes. In a family or a
  // pool: of all.
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
  std::vector<Tensor> state;  // by state index, after the updates
};
EagerResult run_eagerly(const Graph& captured, const std::vector<Tensor>& inputs, const std::vector<Tensor>& state);

// Values for a replay that lacks them: floats uniform in [-1,1) from the seed and the name, integers and bools zero.
Tensor default_value(const Type& type, std::uint64_t seed, const std::string& name);

}  // namespace TAPEDECK_API
