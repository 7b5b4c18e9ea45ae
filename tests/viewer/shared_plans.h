// Plans that all tests of the process share: most tests open the same few graphs, and searching them takes longer than the rest
// of such a test. A problem is searched once, and a budget is planned once. The plans are those of search_plans.
#pragma once

#include <tapedeck/viewer/planning/default_source.h>

#include <tapedeck/capture/plan/wished_values.h>
#include <tapedeck/engine/text/text.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace tapedeck::viewer {

class SharedPlans : public PlanSource {
 public:
  // Null if plans of this problem are not shared: a search of a large graph must hear that it is cancelled, and a test may wait
  // for it to be at work. Such graphs are made as text, by training_graph(); the models of the zoo are shared up to a larger
  // size.
  static std::unique_ptr<PlanSource> of(const PlanProblem& problem, const SourceWork& work) {
    const bool is_made = problem.graph->name == "step";
    if (problem.graph->node_count() > (is_made ? 100 : 400) || !is_plain(problem.options)) return nullptr;
    const PlanOptions& o = problem.options;
    std::string key = work.effort == SearchEffort::draft ? "draft " : "full ";
    key += std::string(strategy_name(o.strategy)) + " ";
    for (const std::int64_t part : {o.alignment, o.chunk_bytes, std::int64_t{o.threads}}) key += std::to_string(part) + " ";
    for (const int part : {static_cast<int>(o.level), static_cast<int>(o.ordering), static_cast<int>(o.sharing)})
      key += std::to_string(part) + " ";
    for (const Wish& wish : problem.options.wishes) key += wish_text(wish) + "; ";
    key += print(*problem.graph);
    const std::shared_ptr<Known> known = find(key);
    known->search_for(problem, work);
    if (work.progress) work.progress(1);
    return std::make_unique<SharedPlans>(known);
  }

  struct Known {
    std::mutex mutex;
    std::unique_ptr<PlanSource> search;
    std::map<std::int64_t, Plan> plans;  // by budget

    // Makes the search if no test has made it. A window that closes meanwhile cancels the search, and the next window makes it.
    // The flag of the window ends with the window and the search does not, so the search has a flag of its own.
    void search_for(const PlanProblem& problem, const SourceWork& work) {
      std::lock_guard lock(mutex);
      if (search) return;
      cancel = false;
      asking = work.cancel;
      const auto stop_asking = [](std::atomic<const std::atomic<bool>*>* flag) { *flag = nullptr; };
      const std::unique_ptr<std::atomic<const std::atomic<bool>*>, decltype(stop_asking)> until_here(&asking, stop_asking);
      search = search_plans(problem, {work.effort, &cancel, [this](double) { hear(); }});
    }

   private:
    void hear() {
      const std::atomic<bool>* window = asking;
      if (window != nullptr && *window) cancel = true;
    }
    std::atomic<bool> cancel{false};
    std::atomic<const std::atomic<bool>*> asking{nullptr};  // the flag of the window that waits for the search
  };
  explicit SharedPlans(std::shared_ptr<Known> known) : known_(std::move(known)) {}

  Plan plan(std::int64_t budget) override {
    std::lock_guard lock(known_->mutex);
    const auto found = known_->plans.find(budget);
    return found != known_->plans.end() ? found->second
                                        : known_->plans.emplace(budget, known_->search->plan(budget)).first->second;
  }
  std::int64_t bytes_of_percent(double percent) const override {
    std::lock_guard lock(known_->mutex);
    return known_->search->bytes_of_percent(percent);
  }
  std::int64_t floor() const override {
    std::lock_guard lock(known_->mutex);
    return known_->search->floor();
  }
  std::int64_t keep_all_peak() const override {
    std::lock_guard lock(known_->mutex);
    return known_->search->keep_all_peak();
  }

 private:
  // Whether the key names every option that is not as by default.
  static bool is_plain(const PlanOptions& o) {
    const PlanOptions plain;
    return o.budget == plain.budget && o.budget_percent == plain.budget_percent && o.device == plain.device &&
           o.place_work == plain.place_work && !o.near && o.find_floor && o.segment_us == plain.segment_us &&
           o.dispatch_us == plain.dispatch_us && !o.split_phases && o.parallel_peak == plain.parallel_peak && !o.costs;
  }
  static std::shared_ptr<Known> find(const std::string& key) {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<Known>> all;
    std::lock_guard lock(mutex);
    std::shared_ptr<Known>& known = all[key];
    if (!known) known = std::make_shared<Known>();
    return known;
  }

  std::shared_ptr<Known> known_;
};

// A MakeSource.
inline std::unique_ptr<PlanSource> share_plans(const PlanProblem& problem, const SourceWork& work) {
  std::unique_ptr<PlanSource> shared = SharedPlans::of(problem, work);
  return shared ? std::move(shared) : search_plans(problem, work);
}

}  // namespace tapedeck::viewer
