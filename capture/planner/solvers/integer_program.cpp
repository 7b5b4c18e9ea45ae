// The only file that knows CBC. CBC keeps some of its state in static variables, so one program is solved at a time.
#include <tapedeck/capture/planner/solvers/integer_program.h>

#include <tapedeck/engine/ir/error.h>

#include <algorithm>
#include <cstddef>

#ifdef TAPEDECK_HAS_CBC
#include <CbcEventHandler.hpp>
#include <CbcModel.hpp>
#include <CbcSolver.hpp>
#include <CoinPackedMatrix.hpp>
#include <OsiClpSolverInterface.hpp>

#include <fmt/format.h>

#include <array>
#include <mutex>
#include <string>
#endif

namespace tapedeck {

#ifndef TAPEDECK_HAS_CBC

bool has_program_solver() { return false; }

void require_program_solver() {
  throw UsageError(
      "integer programs are solved by CBC, and this Tapedeck is built without it: install CBC (Debian: coinor-libcbc-dev), "
      "then build Tapedeck again");
}

ProgramAnswer solve(const IntegerProgram&, const ProgramLimits&, const Watch&) {
  require_program_solver();
  return {};
}
double relaxed_cost(const IntegerProgram&, const Watch&) {
  require_program_solver();
  return 0;
}

#else

namespace {

std::mutex& one_at_a_time() {
  static std::mutex mutex;
  return mutex;
}

// Ends the search where the caller cancels it.
class EndWhenCancelled : public CbcEventHandler {
 public:
  explicit EndWhenCancelled(const std::atomic<bool>* cancel) : cancel_(cancel) {}
  CbcAction event(CbcEvent) override { return cancel_ && cancel_->load() ? stop : noAction; }
  CbcEventHandler* clone() const override { return new EndWhenCancelled(*this); }

 private:
  const std::atomic<bool>* cancel_ = nullptr;
};

CoinPackedMatrix matrix_of(const IntegerProgram& program) {
  std::vector<int> rows, columns;
  std::vector<double> factors;
  for (std::size_t r = 0; r < program.rows.size(); ++r) {
    for (const Term& term : program.rows[r].terms) {
      if (term.column < 0 || term.factor == 0) continue;
      rows.push_back(static_cast<int>(r));
      columns.push_back(term.column);
      factors.push_back(term.factor);
    }
  }
  CoinPackedMatrix matrix(false, rows.data(), columns.data(), factors.data(), static_cast<int>(factors.size()));
  matrix.setDimensions(static_cast<int>(program.rows.size()), static_cast<int>(program.columns.size()));
  return matrix;
}

void load(const IntegerProgram& program, OsiClpSolverInterface* solver) {
  std::vector<double> least, most, cost, row_least, row_most;
  for (const ProgramColumn& column : program.columns) {
    least.push_back(column.least);
    most.push_back(std::min(column.most, solver->getInfinity()));
    cost.push_back(column.cost);
  }
  for (const ProgramRow& row : program.rows) {
    row_least.push_back(std::max(row.least, -solver->getInfinity()));
    row_most.push_back(std::min(row.most, solver->getInfinity()));
  }
  solver->messageHandler()->setLogLevel(0);
  solver->loadProblem(matrix_of(program), least.data(), most.data(), cost.data(), row_least.data(), row_most.data());
  for (std::size_t i = 0; i < program.columns.size(); ++i)
    if (program.columns[i].whole) solver->setInteger(static_cast<int>(i));
}

int go_on(CbcModel*, int) { return 0; }

// Heuristics that look for answers are off: the caller knows a good answer, and one of them ends the process on some programs.
void search(const ProgramLimits& limits, CbcModel* model) {
  CbcSolverUsefulData data;
  CbcMain0(*model, data);
  data.noPrinting_ = true;
  data.useSignalHandler_ = false;
  model->setLogLevel(0);
  std::vector<std::string> words = {
      "tapedeck", "-log", "0", "-ratioGap", "0", "-heuristicsOnOff", "off", "-maxNodes", fmt::format("{}", limits.nodes)};
  if (limits.least_step > 0) words.insert(words.end(), {"-increment", fmt::format("{:.17g}", 0.999 * limits.least_step)});
  if (limits.worth < kNoLimit) words.insert(words.end(), {"-cutoff", fmt::format("{:.17g}", limits.worth)});
  words.insert(words.end(), {"-solve", "-quit"});
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  CbcMain1(static_cast<int>(arguments.size()), arguments.data(), *model, go_on, data);
}

}  // namespace

bool has_program_solver() { return true; }
void require_program_solver() {}

ProgramAnswer solve(const IntegerProgram& program, const ProgramLimits& limits, const Watch& watch) {
  const std::lock_guard<std::mutex> lock(one_at_a_time());
  watch.check();
  OsiClpSolverInterface solver;
  load(program, &solver);
  CbcModel model(solver);
  EndWhenCancelled handler(watch.cancel);
  model.passInEventHandler(&handler);
  search(limits, &model);
  watch.check();
  ProgramAnswer answer;
  if (const double* best = model.bestSolution()) answer.columns.assign(best, best + program.columns.size());
  answer.is_proven = model.isProvenOptimal() || model.isProvenInfeasible();
  answer.least_cost = std::max(model.getBestPossibleObjValue(), 0.0);
  if (answer.is_proven) answer.least_cost = answer.columns.empty() ? kNoLimit : model.getObjValue();
  return answer;
}

double relaxed_cost(const IntegerProgram& program, const Watch& watch) {
  watch.check();
  OsiClpSolverInterface solver;
  load(program, &solver);
  solver.initialSolve();
  return solver.isProvenOptimal() ? solver.getObjValue() : kNoLimit;
}

#endif

}  // namespace tapedeck
