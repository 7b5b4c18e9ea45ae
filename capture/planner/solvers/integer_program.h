// Integer programs with columns between 0 and 1, and their solver: CBC, a Debian package (`coinor-libcbc-dev`), where Tapedeck
// is built with it.
//
//     least  5 x + 3 y          columns x, y: whole numbers
//     row    x + y >= 1         answer: y = 1, cost 3, proven
#pragma once

#include <tapedeck/capture/planner/solvers/cancel_and_progress.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace tapedeck {

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct Term {
  std::int32_t column = -1;  // -1: nothing, so that a term of a column that is always 0 can be written down
  double factor = 0;
};

// The sum of the terms lies between `least` and `most`.
struct ProgramRow {
  std::vector<Term> terms;
  double least = 0, most = 0;
};

struct ProgramColumn {
  double cost = 0;
  double least = 0, most = 1;
  bool whole = false;
};

struct IntegerProgram {
  std::vector<ProgramColumn> columns;
  std::vector<ProgramRow> rows;
};

struct ProgramLimits {
  double worth = kNoLimit;  // only answers of at most this cost are looked for
  double least_step = 0;    // the costs of two answers differ by at least this much; 0: not known
  std::int64_t nodes = 0;   // of the tree that CBC searches: a work limit that is the same on every machine
};

struct ProgramAnswer {
  std::vector<double> columns;  // empty: no answer was found
  double least_cost = 0;        // no answer costs less, REQUIRES costs of at least 0; infinity: no answer costs at most `worth`
  bool is_proven = false;       // the answer is the cheapest one, or no answer costs at most `worth`
};

// Whether Tapedeck is built with CBC. Without it, the functions below throw UsageError, which names the package.
bool has_program_solver();
void require_program_solver();

// Equal arguments give equal answers. Throws Cancelled if the caller cancels.
ProgramAnswer solve(const IntegerProgram& program, const ProgramLimits& limits, const Watch& watch);

// The least cost if columns need not be whole; infinity if there is no answer.
double relaxed_cost(const IntegerProgram& program, const Watch& watch);

}  // namespace tapedeck
