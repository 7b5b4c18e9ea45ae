// Tests the background worker: budgets are answered from a draft first, then finally; only the newest request counts, and no
// call blocks.
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/planning/plan_worker.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tapedeck::viewer {
namespace {

// A source whose plans are all one small plan; `work` may be watched in making it and in each plan.
struct FakeSource : PlanSource {
  std::function<void(std::int64_t)> on_plan = [](std::int64_t) {};
  double cost = 1;

  Plan plan(std::int64_t budget) override {
    on_plan(budget);
    Plan plan = make_random_plan(1, 20).plan;
    plan.budget_bytes = budget;
    plan.peak_bytes = budget < 0 ? 100 : std::min<std::int64_t>(budget, 100);
    plan.cost_us = cost;
    plan.keep_all_cost_us = 1;
    return plan;
  }
  std::int64_t bytes_of_percent(double percent) const override { return static_cast<std::int64_t>(percent); }
  std::int64_t floor() const override { return 40; }
  std::int64_t keep_all_peak() const override { return 100; }
};

std::shared_ptr<const PlanProblem> problem(std::shared_ptr<const Graph> graph = nullptr) {
  if (!graph) graph = std::make_shared<const Graph>(make_random_plan(1, 20).plan.graph);
  return std::make_shared<const PlanProblem>(PlanProblem{std::move(graph), {}});
}

bool is_draft(const SourceWork& work) { return work.effort == SearchEffort::draft; }

// Waits for a result that meets the condition, and returns it. After a minute or more the test fails, and the last result is
// returned: under a sanitizer, beside other tests, a search may take many seconds.
PlanWorker::Result wait_for(PlanWorker& worker, const std::function<bool(const PlanWorker::Result&)>& wanted) {
  PlanWorker::Result last;
  for (int i = 0; i < 60'000; ++i) {
    if (auto result = worker.take()) {
      last = *result;
      if (wanted(last)) return last;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ADD_FAILURE() << "no such result";
  return last;
}

TEST(PlanWorker, ADraftComesBeforeTheFinalPlan) {
  std::atomic<bool> may_prepare{false};
  PlanWorker worker([] {},
                    [&](const PlanProblem&, const SourceWork& work) -> std::unique_ptr<PlanSource> {
                      while (!is_draft(work) && !may_prepare && !*work.cancel) std::this_thread::yield();
                      auto source = std::make_unique<FakeSource>();
                      source->cost = is_draft(work) ? 3 : 2;
                      return source;
                    });
  const auto asked = problem();
  const std::uint64_t number = worker.request(asked, {60, -1});
  const auto draft = wait_for(worker, [](const auto&) { return true; });
  EXPECT_TRUE(draft.improving);
  EXPECT_EQ(draft.number, number);
  EXPECT_EQ(draft.model->plan().cost_us, 3);
  EXPECT_TRUE(worker.busy());
  may_prepare = true;
  const auto last = worker.wait();
  ASSERT_TRUE(last && last->model);
  EXPECT_FALSE(last->improving);
  EXPECT_EQ(last->model->plan().cost_us, 2);
  EXPECT_EQ(last->model->plan().budget_bytes, 60);
  EXPECT_FALSE(worker.busy());
}

// While the full search is prepared, every budget of a drag gets a draft; the search is prepared once.
TEST(PlanWorker, BudgetsAreAnsweredWhileTheSearchIsPrepared) {
  std::atomic<int> searches{0};
  std::atomic<bool> may_prepare{false};
  PlanWorker worker([] {},
                    [&](const PlanProblem&, const SourceWork& work) -> std::unique_ptr<PlanSource> {
                      searches += !is_draft(work);
                      while (!is_draft(work) && !may_prepare && !*work.cancel) std::this_thread::yield();
                      return std::make_unique<FakeSource>();
                    });
  const auto asked = problem();
  for (const std::int64_t budget : {90, 80, 70, 60}) {
    const std::uint64_t number = worker.request(asked, {budget, -1});
    const auto draft = wait_for(worker, [&](const auto& r) { return r.number == number; });
    EXPECT_TRUE(draft.improving);
    EXPECT_EQ(draft.model->plan().budget_bytes, budget);
  }
  may_prepare = true;
  EXPECT_EQ(worker.wait()->model->plan().budget_bytes, 60);
  EXPECT_EQ(searches.load(), 1);
}

// Drafts of one peak whose addresses differ: each is another random plan.
struct UnsteadySource : FakeSource {
  Plan plan(std::int64_t budget) override {
    Plan plan = make_random_plan(static_cast<unsigned>(budget), 20).plan;
    plan.budget_bytes = budget;
    plan.peak_bytes = budget < 50 ? 40 : 50;
    plan.cost_us = cost;
    plan.keep_all_cost_us = 1;
    return plan;
  }
};

// Addresses stay where they were as long as the peak stays, but for a plan that costs less.
TEST(PlanWorker, DraftsOfTheSamePeakKeepTheirAddresses) {
  UnsteadySource* drafts = nullptr;
  PlanWorker worker([] {},
                    [&](const PlanProblem&, const SourceWork& work) -> std::unique_ptr<PlanSource> {
                      while (!is_draft(work) && !*work.cancel) std::this_thread::yield();
                      auto source = std::make_unique<UnsteadySource>();
                      source->cost = 3;
                      if (is_draft(work)) drafts = source.get();
                      return source;
                    });
  const auto asked = problem();
  const auto draft = [&](std::int64_t budget) {
    const std::uint64_t number = worker.request(asked, {budget, -1});
    return wait_for(worker, [&](const auto& r) { return r.number == number; }).model;
  };
  const auto first = draft(90);
  for (const std::int64_t budget : {80, 60, 50, 70}) EXPECT_EQ(draft(budget), first) << budget;
  const auto lower = draft(45);
  EXPECT_EQ(lower->plan().peak_bytes, 40);
  EXPECT_EQ(draft(44), lower);
  EXPECT_NE(draft(80)->plan().peak_bytes, 40);
  drafts->cost = 2;
  const auto cheaper = draft(85);
  EXPECT_EQ(cheaper->plan().cost_us, 2);
  EXPECT_EQ(draft(75), cheaper);
}

// The plan of the file is shown before anything is asked for, and the first drafts keep its addresses too.
TEST(PlanWorker, TheFirstDraftKeepsTheAddressesOfTheShownPlan) {
  PlanWorker worker([] {},
                    [&](const PlanProblem&, const SourceWork& work) -> std::unique_ptr<PlanSource> {
                      while (!is_draft(work) && !*work.cancel) std::this_thread::yield();
                      return std::make_unique<UnsteadySource>();
                    });
  UnsteadySource source;
  const auto shown = PlanModel::of(source.plan(99));
  const auto asked = problem();
  worker.prepare(asked, shown);
  worker.request(asked, {70, -1});
  EXPECT_EQ(wait_for(worker, [](const auto&) { return true; }).model, shown);
}

// A file that holds its plan asks for none. The draft search is made all the same, so that the first budget of a drag does not
// wait for it.
TEST(PlanWorker, TheDraftSearchIsThereBeforeTheFirstRequest) {
  std::atomic<int> drafts{0};
  PlanWorker worker([] {},
                    [&](const PlanProblem&, const SourceWork& work) -> std::unique_ptr<PlanSource> {
                      while (!is_draft(work) && !*work.cancel) std::this_thread::yield();
                      auto source = std::make_unique<UnsteadySource>();
                      if (is_draft(work)) source->on_plan = [&](std::int64_t) { ADD_FAILURE() << "nobody asked for a plan"; };
                      drafts += is_draft(work);
                      return source;
                    });
  worker.prepare(problem(), PlanModel::of(UnsteadySource().plan(99)));
  for (int i = 0; i < 10000 && drafts == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(drafts, 1);
}

// The drafts of a real step, there and back, as a hand drags.
TEST(PlanWorker, DraftsOfAStepKeepTheirAddressesWhileThePeakStays) {
  const auto asked = problem(std::make_shared<const Graph>(parse(training_graph(16), "step")));
  PlanWorker worker([] {},
                    [&](const PlanProblem& of, const SourceWork& work) -> std::unique_ptr<PlanSource> {
                      while (!is_draft(work) && !*work.cancel) std::this_thread::yield();
                      return search_plans(of, work);
                    });
  const Plan whole = make_plan(*asked->graph, {});
  const auto addresses = [](const PlanModel& model) {
    std::vector<std::pair<std::string, std::int64_t>> found;
    for (const PlanRect& r : model.rects())
      if (r.value != kNone) found.emplace_back(model.name_of(r.value), r.address);
    return found;
  };
  std::shared_ptr<const PlanModel> before = PlanModel::of(make_plan(*asked->graph, {}));
  worker.prepare(asked, before);
  int again = 0;
  const std::int64_t from = whole.keep_all_peak_bytes, to = whole.floor_bytes;
  for (int i = 0; i <= 60; ++i) {
    const int step = i <= 30 ? i : 60 - i;
    const std::uint64_t number = worker.request(asked, {from - (from - to) * step / 60, -1});
    const auto draft = wait_for(worker, [&](const auto& r) { return r.number == number; }).model;
    if (draft->plan().peak_bytes == before->plan().peak_bytes) {
      ++again;
      ASSERT_EQ(addresses(*draft), addresses(*before)) << "step " << i;
    }
    before = draft;
  }
  EXPECT_GE(again, 10);
}

// A final plan under way gives way to a newer budget.
TEST(PlanWorker, TheNewestRequestWins) {
  std::atomic<int> cancelled{0};
  PlanWorker worker([] {},
                    [&](const PlanProblem&, const SourceWork& work) -> std::unique_ptr<PlanSource> {
                      auto source = std::make_unique<FakeSource>();
                      if (is_draft(work)) return source;
                      source->on_plan = [&cancelled, cancel = work.cancel](std::int64_t budget) {
                        while (budget < 50 && budget >= 0 && !*cancel)
                          std::this_thread::yield();  // a small budget ends only by a newer one
                        if (!*cancel) return;
                        ++cancelled;
                        throw Cancelled("cancelled");
                      };
                      return source;
                    });
  const auto asked = problem();
  std::uint64_t last = 0;
  for (int i = 41; i < 49; ++i) {
    last = worker.request(asked, {i, -1});
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  last = worker.request(asked, {99, -1});
  const auto result = worker.wait();
  ASSERT_TRUE(result && result->model);
  EXPECT_EQ(result->number, last);
  EXPECT_EQ(result->model->plan().budget_bytes, 99);
}

// The first pictures of a large graph do not wait for the tables. Later plans come with theirs.
TEST(PlanWorker, ThePicturesOfALargeGraphComeFirst) {
  PlanWorker worker([] {},
                    [](const PlanProblem&, const SourceWork& work) {
                      while (!is_draft(work) && !*work.cancel) std::this_thread::yield();
                      return std::make_unique<FakeSource>();
                    },
                    false);
  const auto asked = problem(std::make_shared<const Graph>(parse(training_graph(5000))));
  worker.request(asked, {60, -1});
  const auto first = wait_for(worker, [](const auto&) { return true; });
  ASSERT_TRUE(first.model);
  for (int i = 0; i < 10000 && !first.model->is_complete(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(first.model->is_complete());
  worker.request(asked, {50, -1});
  const auto second = wait_for(worker, [](const auto&) { return true; });
  ASSERT_TRUE(second.model);
  EXPECT_TRUE(second.model->is_complete());
}

// The full search takes seconds beside the thread that draws; a draft is what a person waits for.
TEST(PlanWorker, TheFullSearchGivesWay) {
  std::atomic<int> draft{0}, full{0};
  PlanWorker worker([] {},
                    [&](const PlanProblem&, const SourceWork& work) {
                      (is_draft(work) ? draft : full) = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
                      return std::make_unique<FakeSource>();
                    },
                    false);
  worker.request(problem(), {60, -1});
  wait_for(worker, [](const auto& result) { return !result.improving; });
  if (const int here = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); here < 19) {
    EXPECT_GT(full.load(), here);
    EXPECT_EQ(draft.load(), here);
  }
}

// The searches of a large graph take long to destroy.
TEST(PlanWorker, TheCallerDestroysNoSearch) {
  struct Witness {
    std::promise<std::thread::id> destroyed;
    ~Witness() { destroyed.set_value(std::this_thread::get_id()); }
  };
  struct WitnessedSource : FakeSource {
    Witness witness;
  };
  std::mutex mutex;
  std::vector<std::future<std::thread::id>> destroyed;
  PlanWorker worker([] {},
                    [&](const PlanProblem&, const SourceWork&) -> std::unique_ptr<PlanSource> {
                      auto source = std::make_unique<WitnessedSource>();
                      std::lock_guard lock(mutex);
                      destroyed.push_back(source->witness.destroyed.get_future());
                      return source;
                    },
                    false);
  // Four problems have a search each. The worker keeps the searches of three of them.
  for (int i = 0; i < 4; ++i) {
    worker.request(problem(), {60, -1});
    ASSERT_TRUE(worker.wait());
  }
  worker.cancel();
  std::lock_guard lock(mutex);
  ASSERT_GE(destroyed.size(), 4u);
  for (std::future<std::thread::id>& where : destroyed) EXPECT_NE(where.get(), std::this_thread::get_id());
}

TEST(PlanWorker, ErrorsComeBackAsText) {
  PlanWorker worker(
      [] {}, [](const PlanProblem&, const SourceWork&) -> std::unique_ptr<PlanSource> { throw UsageError("no such thing"); });
  worker.request(problem(), {});
  const auto result = worker.wait();
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->model);
  EXPECT_FALSE(result->improving);
  EXPECT_EQ(result->error, "no such thing");
}

TEST(PlanWorker, ThrottlesTheNewsOfProgress) {
  std::atomic<int> wakes{0};
  PlanWorker worker([&] { ++wakes; },
                    [&](const PlanProblem&, const SourceWork& work) -> std::unique_ptr<PlanSource> {
                      if (work.progress)
                        for (int i = 0; i <= 10'000; ++i) work.progress(i / 10'000.0);
                      return std::make_unique<FakeSource>();
                    });
  worker.request(problem(), {});
  ASSERT_TRUE(worker.wait());
  EXPECT_DOUBLE_EQ(worker.progress(), 1);
  EXPECT_GE(wakes.load(), 1);
  EXPECT_LE(wakes.load(), 100);
}

TEST(PlanWorker, CancelForgetsAndDestructionDoesNotWait) {
  std::atomic<bool> started{false};
  {
    PlanWorker worker([] {},
                      [&](const PlanProblem&, const SourceWork& work) -> std::unique_ptr<PlanSource> {
                        started = true;
                        while (!*work.cancel) std::this_thread::yield();
                        throw Cancelled("cancelled");
                      });
    worker.request(problem(), {});
    worker.cancel();
    EXPECT_FALSE(worker.busy());
    EXPECT_FALSE(worker.take());
    worker.request(problem(), {});
    while (!started) std::this_thread::yield();
  }
}

// While nobody waits, the worker plans further budgets, and then rests.
TEST(PlanWorker, FillsTheArchiveAndRests) {
  std::atomic<int> plans{0};
  PlanWorker worker([] {},
                    [&](const PlanProblem&, const SourceWork&) -> std::unique_ptr<PlanSource> {
                      auto source = std::make_unique<FakeSource>();
                      source->on_plan = [&](std::int64_t) { ++plans; };
                      return source;
                    });
  worker.prepare(problem());
  EXPECT_FALSE(worker.busy());
  for (int i = 0; i < 10000 && worker.fills(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_FALSE(worker.fills());
  const std::vector<KnownPlan> known = worker.known();
  EXPECT_GT(known.size(), 10u);
  EXPECT_EQ(known.front().budget, 40);
  EXPECT_EQ(known.back().budget, 100);
  ASSERT_TRUE(worker.keep_all());
  const int so_far = plans;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(plans.load(), so_far);
}

// A replay that is timed must not be disturbed; what a person asks for is planned all the same.
TEST(PlanWorker, NothingIsPlannedUnaskedWhileFillingIsPaused) {
  std::atomic<int> plans{0};
  PlanWorker worker([] {},
                    [&](const PlanProblem&, const SourceWork& work) -> std::unique_ptr<PlanSource> {
                      auto source = std::make_unique<FakeSource>();
                      if (!is_draft(work)) source->on_plan = [&](std::int64_t) { ++plans; };
                      return source;
                    });
  worker.pause_filling(true);
  worker.request(problem(), {60, -1});
  const auto asked = worker.wait();
  ASSERT_TRUE(asked && asked->model);
  EXPECT_EQ(asked->model->plan().budget_bytes, 60);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(plans.load(), 1);
  EXPECT_TRUE(worker.fills());
  worker.pause_filling(false);
  for (int i = 0; i < 10000 && worker.fills(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(worker.fills());
  EXPECT_GT(plans.load(), 1);
}

// A problem that was asked before comes back with its search and its plans.
TEST(PlanWorker, AFormerProblemIsNotPreparedAgain) {
  std::atomic<int> searches{0};
  PlanWorker worker([] {},
                    [&](const PlanProblem&, const SourceWork& work) -> std::unique_ptr<PlanSource> {
                      searches += !is_draft(work);
                      return std::make_unique<FakeSource>();
                    });
  const auto first = problem(), second = problem();
  worker.request(first, {60, -1});
  const auto before = worker.wait();
  worker.request(second, {60, -1});
  ASSERT_TRUE(worker.wait());
  worker.request(first, {60, -1});
  const auto again = worker.wait();
  ASSERT_TRUE(again && again->model);
  EXPECT_EQ(again->model, before->model);
  EXPECT_EQ(searches.load(), 2);
  worker.request(first, {70, -1});
  EXPECT_EQ(worker.wait()->model->plan().budget_bytes, 70);
}

TEST(PlanArchive, AnswersWithTheCheapestPlanThatFits) {
  PlanArchive archive(20);
  FakeSource source;
  for (const auto& [budget, cost] : std::vector<std::pair<std::int64_t, double>>{{50, 5}, {70, 3}, {90, 2}}) {
    source.cost = cost;
    archive.put(budget, PlanModel::of(source.plan(budget)));
  }
  EXPECT_EQ(archive.cheapest_within(80)->plan().budget_bytes, 70);
  EXPECT_EQ(archive.cheapest_within(1000)->plan().budget_bytes, 90);
  EXPECT_FALSE(archive.cheapest_within(49));
  EXPECT_FALSE(archive.find(71));
  EXPECT_EQ(archive.points().size(), 3u);
  EXPECT_EQ(archive.next_to_fill(50, 90), 60);  // the first of the two widest gaps
  EXPECT_FALSE(PlanArchive(1'000'000).next_to_fill(50, 90));
}

// Filling ends, whatever was asked before, and whatever is forgotten to make room.
TEST(PlanArchive, FillingEnds) {
  for (const std::size_t nodes : {10u, 1000u, 3000u, 9000u, 100'000u}) {
    PlanArchive archive(nodes);
    FakeSource source;
    for (std::int64_t budget = 1000; budget < 1030; ++budget) archive.put(budget, PlanModel::of(source.plan(budget)));
    int filled = 0;
    while (const auto budget = archive.next_to_fill(40, 1'000'000)) {
      archive.put(*budget, PlanModel::of(source.plan(*budget)));
      ASSERT_LT(++filled, 100) << nodes;
    }
  }
}

// A training step of equal layers, whose values can be made again.
std::shared_ptr<const Graph> chain(int layers) {
  std::string text = "graph chain(%x: u8[64]) {\n%a0: u8[64] = opaque(%x) {us=1.0}\n";
  for (int i = 1; i <= layers; ++i) text += fmt::format("%a{}: u8[64] = opaque(%a{}) {{us=1.0}}\n", i, i - 1);
  text += fmt::format("%g{}: u8[64] = opaque(%a{}) {{us=1.0}} [phase=backward]\n", layers, layers);
  for (int i = layers; i >= 1; --i)
    text += fmt::format("%g{}: u8[64] = opaque(%g{}, %a{}) {{us=1.0}} [phase=backward]\n", i - 1, i, i);
  return std::make_shared<const Graph>(parse(text + "return %g0\n}\n", "chain"));
}

// Final plans are those of make_plan, whatever was asked before; drafts hold their budgets.
TEST(PlanWorker, FinalPlansAreThoseOfMakePlan) {
  PlanWorker worker([] {});
  for (int layers : {8, 12}) {
    const auto asked = problem(chain(layers));
    const std::int64_t peak = make_plan(*asked->graph, {}).keep_all_peak_bytes;
    for (const Budget& budget : {Budget{}, Budget{-1, 90}, Budget{-1, 60}, Budget{peak - 1, -1}}) {
      worker.request(asked, budget);
      const auto result = worker.wait();
      ASSERT_TRUE(result && result->model);
      PlanOptions options;
      options.budget = budget.bytes;
      options.budget_percent = budget.percent;
      const Plan alone = make_plan(*asked->graph, options);
      EXPECT_EQ(print(result->model->plan().graph), print(alone.graph));
      EXPECT_EQ(result->model->plan().peak_bytes, alone.peak_bytes);
      EXPECT_EQ(result->model->plan().floor_bytes, alone.floor_bytes);
    }
  }
}

// A source whose layouts stand on their heads, which keeps their sizes.
struct TurnedSource : PlanSource {
  explicit TurnedSource(std::unique_ptr<PlanSource> of) : source(std::move(of)) {}
  Plan plan(std::int64_t budget) override {
    Plan plan = source->plan(budget);
    for (std::size_t v = 0; v < plan.values.size(); ++v)
      if (plan.values[v].where == Where::arena)
        plan.values[v].offset = plan.arena_bytes - plan.values[v].offset - plan.graph.values[v].type.bytes();
    for (Scratch& scratch : plan.workspace)
      if (scratch.bytes > 0) scratch.offset = plan.arena_bytes - scratch.offset - scratch.bytes;
    return plan;
  }
  std::int64_t bytes_of_percent(double percent) const override { return source->bytes_of_percent(percent); }
  std::int64_t floor() const override { return source->floor(); }
  std::int64_t keep_all_peak() const override { return source->keep_all_peak(); }
  std::unique_ptr<PlanSource> source;
};

std::vector<std::int64_t> offsets_of(const Plan& plan) {
  std::vector<std::int64_t> offsets;
  for (const Placement& p : plan.values) offsets.push_back(p.offset);
  return offsets;
}

// The draft is shown first. The final plan has the numbers of make_plan, and moves nothing where the draft has its peak.
TEST(PlanWorker, AFinalPlanKeepsTheAddressesOfItsDraft) {
  std::atomic<bool> may_prepare{false};
  PlanWorker worker([] {},
                    [&](const PlanProblem& of, const SourceWork& work) -> std::unique_ptr<PlanSource> {
                      while (!is_draft(work) && !may_prepare && !*work.cancel) std::this_thread::yield();
                      auto made = search_plans(of, {SearchEffort::full, work.cancel, {}});
                      if (!is_draft(work)) return made;
                      return std::make_unique<TurnedSource>(std::move(made));
                    });
  const auto asked = problem(std::make_shared<const Graph>(parse(training_graph(8), "step")));
  PlanOptions options;
  options.budget_percent = 80;
  const Plan alone = make_plan(*asked->graph, options);
  worker.request(asked, {-1, 80});
  const auto draft = wait_for(worker, [](const auto&) { return true; });
  ASSERT_TRUE(draft.improving);
  ASSERT_NE(offsets_of(draft.model->plan()), offsets_of(alone));
  ASSERT_EQ(check_plan(draft.model->plan()), std::vector<std::string>{});
  may_prepare = true;
  const auto final = worker.wait();
  ASSERT_TRUE(final && final->model);
  EXPECT_EQ(offsets_of(final->model->plan()), offsets_of(draft.model->plan()));
  EXPECT_EQ(check_plan(final->model->plan()), std::vector<std::string>{});
  EXPECT_EQ(print(final->model->plan().graph), print(alone.graph));
  EXPECT_EQ(final->model->plan().peak_bytes, alone.peak_bytes);
  EXPECT_EQ(final->model->plan().cost_us, alone.cost_us);
  EXPECT_EQ(final->model->plan().floor_bytes, alone.floor_bytes);
  // Asked again, it stays there.
  worker.request(asked, {-1, 80});
  EXPECT_EQ(worker.wait()->model, final->model);
}

}  // namespace
}  // namespace tapedeck::viewer
