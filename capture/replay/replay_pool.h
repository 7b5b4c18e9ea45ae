// Several executors over one arena and one set of state: a train step and an inference step, a step at several sizes, unrelated
// steps.
//
//     auto pool = std::make_shared<ReplayPool>();
//     Executor train(train_plan, {.pool = pool, .name = "train"}), infer(infer_plan, {.pool = pool, .name = "infer"});
//     train.set_state("fc1.weight", w);   // infer's too
//
// The rule, one for all orders of making and running:
//  - Members run one at a time, so the arena is as large as the largest member's: max, not sum. A larger member that joins
//  later makes it
//    grow at the next run, and it shrinks at the next run after the largest has left. Nothing in it outlives a run. Where plans
//    are in chunks (PlanOptions::chunk_bytes) this holds for the first chunk of all members, for the second, and so on: the
//    arena is as many blocks as the member with the most chunks has. Chunks stand largest first, so that equally chunked
//    members share well; a plan in one piece beside one in chunks needs a first block of all its bytes, and the other's further
//    chunks come on top.
//  - State values of one name are one: they must agree in type, and what one member sets, binds, updates or tears is so for
//  all. With
//    StateSharing::by_tensor (captured steps) they are one if they are bound to the same tensor. State lives as long as a
//    member has it.
//  - Inputs, constants and outputs are each member's own (a family made by reshape() counts as one). Results stay what they
//  were until their
//    own member runs again, also those that lie in state which another member is about to write. (Not those in bound state
//    whose tensor the caller wrote meanwhile: they are refused.)
//  - A run that fails after it had begun to write state tears the values its graph updates. Members that have none of them go
//  on.
//
// Peak: state once + the largest arena + everybody's inputs, constants and outputs; planned is observed once all members have
// run. MXNet's shared executors and PyTorch's shared CUDA-graph pools do this with rules of order; here there are none.
//
// Thread safety: executors may be made and destroyed while another member runs. Whatever uses a member while another one is in
// use by another thread is an ExecutionError that names both. What this class says may be asked at any time.
#pragma once

#include <tapedeck/engine/ir/type.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

namespace replay {
class Memory;
}

// What a pool holds, in an order that does not depend on who joined first.
struct PoolReport {
  struct Member {
    std::string name;
    std::int64_t arena_bytes = 0;  // that its plan needs
    std::int64_t own_bytes = 0;    // inputs, constants, outputs; what a family shares counts for its first member
    std::int64_t state_bytes = 0;
    std::int64_t peak_bytes = 0;       // of its plan: what it would hold alone
    std::vector<std::int64_t> chunks;  // of it; one if the plan has none
    bool sets_arena = false;           // no member needs a larger one, of some block of it
  };
  struct State {
    std::string name;
    Type type;
    std::vector<std::string> members;  // that have it
  };
  std::vector<Member> members;       // largest arena first
  std::vector<State> state;          // by name
  std::vector<std::int64_t> blocks;  // that the arena is: each as large as the largest chunk of its number
  std::int64_t arena_bytes = 0, state_bytes = 0, own_bytes = 0;
  std::int64_t planned_peak_bytes = 0;  // of the members there are now: the sum of the three
  std::int64_t separate_bytes = 0;      // that executors of their own would hold
  std::int64_t saved_bytes() const { return separate_bytes - planned_peak_bytes; }
};

class ReplayPool {
 public:
  ReplayPool();
  ~ReplayPool();
  ReplayPool(const ReplayPool&) = delete;

  PoolReport report() const;
  std::int64_t planned_peak_bytes() const { return report().planned_peak_bytes; }
  std::int64_t observed_peak_bytes() const;  // the most bytes held at once so far
  std::string explain() const;               // a table: who sets the arena's size, what is shared, bytes saved
  std::string explain_json() const;          // the same; schema tapedeck.pool/1

  const std::shared_ptr<replay::Memory>& memory() const { return memory_; }  // for executors

 private:
  std::shared_ptr<replay::Memory> memory_;
};

}  // namespace TAPEDECK_API
