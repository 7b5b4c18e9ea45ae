// Tests that the level of detail of a large plan is made by a thread, and is the one that is made at once.
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/viewer/planning/lod_task.h>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <tuple>
#include <vector>

namespace tapedeck::viewer {
namespace {

using Pixels = std::vector<std::tuple<int, int, int, int, int, int>>;

Pixels pixels_of_frame(const LodFrame& frame) {
  Pixels pixels;
  for (const LodRect& r : frame.rects) pixels.emplace_back(r.x0, r.y0, r.x1, r.y1, r.rect, r.count);
  return pixels;
}

class LodOfARandomPlan : public ::testing::Test {
 protected:
  LodRequest request(double share) const {
    PlanView view = model->home();
    view.time.high *= share;
    return {model, view, 300, 200, model->time_axis(TimeUnit::nodes)};
  }
  static Pixels made_now(const LodRequest& r) {
    return pixels_of_frame(make_lod(r.model->rects(), r.view, r.width, r.height, *r.axis));
  }
  const std::shared_ptr<const PlanModel> model = [] {
    MadePlan made = make_random_plan(3, 500);
    return std::make_shared<const PlanModel>(std::make_shared<const Plan>(std::move(made.plan)), std::move(made.curve));
  }();
};

TEST_F(LodOfARandomPlan, ASmallPlanHasItAtOnce) {
  std::atomic<int> wakes{0};
  LodTask task([&] { ++wakes; });
  task.want(request(1));
  EXPECT_TRUE(task.is_fresh());
  EXPECT_EQ(pixels_of_frame(task.frame()), made_now(request(1)));
  EXPECT_EQ(wakes, 0);
}

TEST_F(LodOfARandomPlan, ALargePlanKeepsTheOneBeforeUntilAThreadHasMadeTheNext) {
  std::atomic<int> wakes{0};
  LodTask task([&] { ++wakes; }, 10);
  task.want(request(1));
  EXPECT_FALSE(task.is_fresh());
  EXPECT_TRUE(task.frame().rects.empty());
  task.finish();
  EXPECT_TRUE(task.is_fresh());
  EXPECT_EQ(pixels_of_frame(task.frame()), made_now(request(1)));
  EXPECT_EQ(wakes, 1);
  task.want(request(0.5));
  EXPECT_FALSE(task.is_fresh());
  EXPECT_EQ(task.made(), request(1));
  task.want(request(0.25));  // while the one before is being made
  task.finish();
  EXPECT_EQ(task.made(), request(0.25));
  EXPECT_EQ(pixels_of_frame(task.frame()), made_now(request(0.25)));
  task.forget();
  EXPECT_TRUE(task.frame().rects.empty());
  EXPECT_EQ(task.made().model, nullptr);
}

TEST_F(LodOfARandomPlan, WithoutAThreadAllIsMadeAtOnce) {
  LodTask task({}, 10);
  task.want(request(1));
  EXPECT_TRUE(task.is_fresh());
}

}  // namespace
}  // namespace tapedeck::viewer
