#include <tapedeck/viewer/planning/plan_source.h>

namespace tapedeck::viewer {

namespace {

PlanOptions watched(PlanOptions options, const SourceWork& work) {
  options.cancel = work.cancel;
  options.progress = work.progress;
  return options;
}

class SearchedPlans : public PlanSource {
 public:
  SearchedPlans(const PlanProblem& problem, const SourceWork& work)
      : search_(*problem.graph, watched(problem.options, work), work.effort) {}

  Plan plan(std::int64_t budget) override { return search_.plan(budget); }
  std::int64_t bytes_of_percent(double percent) const override { return search_.bytes_of_percent(percent); }
  std::int64_t floor() const override { return search_.floor(); }
  std::int64_t keep_all_peak() const override { return search_.keep_all_peak(); }

 private:
  PlanSearch search_;
};

}  // namespace

std::unique_ptr<PlanSource> search_plans(const PlanProblem& problem, const SourceWork& work) {
  return std::make_unique<SearchedPlans>(problem, work);
}

}  // namespace tapedeck::viewer
