// Recomputation under a budget as an integer program: what runs again, and what is kept until when. The program of Checkmate
// (Jain et al., "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization", 2020) in a tighter form.
//
// The nodes keep their order, and stage t runs some earlier nodes again, in their order, and then node t for the first time.
//
//     run[t,i]       node i runs in stage t; run[t,t] = 1                              whole
//     keep[t,v]      value v is there when stage t begins                              whole
//     free[t,v,k]    v goes in stage t right after node k has run: its reader, or its maker
//     alive[t,k]     bytes alive in stage t before node k runs
//
//     least          the costs of all runs with i < t
//     flow           keep[t,v] + run[t,maker of v] = the sum of free[t,v,k] over k + keep[t+1,v]
//     operands       run[t,j] <= the copies of v that are there before j: keep[t,v] + run[t,maker of v] - free[t,v,k], k < j
//     free           free[t,v,k] <= run[t,k]
//     bytes          alive[t,next k] = alive[t,k] + bytes that k makes - bytes that go after k
//     budget         alive[t,k] + what k makes and its workspace - operands that its results take over <= budget
//
// `flow` makes all that is known of one value a path through time, so that the relaxation is close to the program: a value that
// is half there is half there for each of its readers.
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/schedules/changes.h>
#include <tapedeck/capture/planner/solvers/integer_program.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

class RecomputeProgram {
 public:
  // Plans with at most `live_bytes` in the arena. Nodes that cost more than `worth` microseconds do not run again. Costs of the
  // program are in units of `cost_unit` microseconds. `facts` outlive it.
  RecomputeProgram(const Facts& facts, std::int64_t live_bytes, double worth, double cost_unit);

  const IntegerProgram& program() const { return program_; }

  // The schedule that an answer stands for.
  Changes changes(const std::vector<double>& columns) const;

 private:
  using Column = std::int32_t;
  static constexpr Column kNever = -1;  // the column is always 0

  struct Free {
    NodeId after = kNone;
    Column column = kNever;
  };

  void list_readers();
  void find_last_stages();
  bool may_repeat(NodeId n) const;
  bool has_bytes(ValueId v) const { return facts_.in_arena(v) && facts_.bytes[v] > 0; }

  Column add_column(double cost, double least, double most, bool whole);
  void add_row(std::vector<Term> terms, double least, double most);
  void add_runs_and_keeps();
  void add_stage(NodeId stage);
  void add_frees(NodeId stage, ValueId v);
  void add_operands(NodeId stage, ValueId v);
  void add_bytes(NodeId stage);
  void add_budget(NodeId stage, NodeId n, Column alive);
  Column free_of(ValueId v, NodeId after) const;
  Column run(NodeId stage, NodeId n) const { return runs_[stage][n]; }
  Column keep(NodeId stage, ValueId v) const { return stage < n_ ? keeps_[stage][v] : kNever; }
  double made_by(NodeId n) const;
  double in_units(std::int64_t bytes) const { return static_cast<double>(bytes) / unit_; }

  const Facts& facts_;
  const NodeId n_;
  const double worth_, cost_unit_;
  double budget_ = 0, unit_ = 1;                   // the budget in units of bytes
  std::vector<std::vector<NodeId>> readers_;       // by value that has bytes: ascending
  std::vector<std::vector<ValueId>> reads_;        // by node: the values that have bytes
  std::vector<NodeId> last_run_, last_read_;       // by node, by value: the last stage that may do it
  std::vector<std::vector<Column>> runs_, keeps_;  // by stage: by node, by value
  std::vector<std::vector<Free>> frees_;           // by value, of the stage that is written down
  IntegerProgram program_;
};

}  // namespace tapedeck
