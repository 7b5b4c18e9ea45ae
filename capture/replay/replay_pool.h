// Several executors over one arena and one set of state: a train step and an inference step, a step at several sizes, unrelated
// steps.
//
//     auto pool = std::make_shared<ReplayPool>();
//     Executor train(train_plan, {.pool = pool, .name = "train"}), infer(infer_plan, {.pool = pool, .name = "infer"});
//     train.set_state("fc1.weight", w);   // infer's too
//
// The rule, for every order of making and running the members:
//  - Arena. Members run one at a time, so the arena is as large as the largest member needs: the maximum, not the sum. If a
//  larger
//    member joins later, the arena grows at the next run; after the largest has left, it shrinks at the next run. The arena
//    holds nothing between runs. If plans are in chunks (PlanOptions::chunk_bytes), this holds for the first chunk of all
//    members, for the second, and so on: the arena has as many blocks as the member with the most chunks has chunks. Chunks
//    stand largest first, so members with equal chunks share well. A plan in one block beside a plan in chunks needs a first
//    block of all its bytes, and the further chunks of the other plan come on top.
//  - State. Values of one name are one value: their types must agree, and setting, binding, updating or tearing it through one
//    member holds for all. With StateSharing::by_tensor (captured steps) values are one if they are bound to the same tensor.
//    State lives as long as a member has it.
//  - Inputs, constants and outputs belong to each member (a family made by reshape() counts as one). Results stay as they are
//  until
//    their own member runs again. This also holds for results in state that another member is about to write. It does not hold
//    for results in bound state after the caller has written the tensor: they are refused.
//  - A run that fails after it has begun to write state tears the values that its graph updates. Members that have none of
//  these
//    values go on.
//
// Peak: state once + the largest arena + the inputs, constants and outputs of all members. The planned peak is the observed
// peak once all members have run. MXNet's shared executors and PyTorch's shared CUDA-graph pools have rules of order; here
// there are none.
//
// Thread safety: executors may be made and destroyed while another member runs. Using a member while another thread uses
// another member is an ExecutionError that names both. The functions of this class may be called at any time.
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

// The contents of a pool, in an order that does not depend on the order of joining.
struct PoolReport {
  struct Member {
    std::string name;
    std::int64_t arena_bytes = 0;  // that its plan needs
    std::int64_t own_bytes = 0;    // inputs, constants, outputs; buffers that a family shares count for its first member
    std::int64_t state_bytes = 0;
    std::int64_t peak_bytes = 0;       // of its plan: the bytes that it would hold alone
    std::vector<std::int64_t> chunks;  // of it; one if the plan has none
    bool sets_arena = false;           // some block of the arena is as large as this member needs, and no larger
  };
  struct State {
    std::string name;
    Type type;
    std::vector<std::string> members;  // that have it
  };
  std::vector<Member> members;       // largest arena first
  std::vector<State> state;          // by name
  std::vector<std::int64_t> blocks;  // of the arena: each as large as the largest chunk of its number
  std::int64_t arena_bytes = 0, state_bytes = 0, own_bytes = 0;
  std::int64_t planned_peak_bytes = 0;  // of the members that there are now: the sum of the three
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
  std::string explain() const;               // a table: the members that set the size of the arena, shared values, bytes saved
  std::string explain_json() const;          // the same; schema tapedeck.pool/1

  const std::shared_ptr<replay::Memory>& memory() const { return memory_; }  // for executors

 private:
  std::shared_ptr<replay::Memory> memory_;
};

}  // namespace TAPEDECK_API
