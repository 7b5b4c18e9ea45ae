// The level of detail of a plan for a picture that moves with the hand. Of a small plan it is made at once. Of a large plan a
// thread makes it, and the picture draws the one before, moved to where it belongs, until the new one is there.
//
//     want(view 1) -> made: view 1     want(view 2) -> thread     made: view 1     wake()     want(view 2) -> made: view 2
#pragma once

#include <tapedeck/viewer/plan/level_of_detail.h>
#include <tapedeck/viewer/planning/awaited_task.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace tapedeck::viewer {

// All that a level of detail is made of.
struct LodRequest {
  std::shared_ptr<const PlanModel> model;
  PlanView view;
  std::int32_t width = 0, height = 0;  // pixels
  std::shared_ptr<const TimeAxis> axis;

  bool operator==(const LodRequest&) const = default;
};

// Only the UI thread may use it.
class LodTask {
 public:
  // Plans of more rectangles are left to a thread. Any thread may call `wake`, which asks for want() again; without it,
  // everything is made at once.
  explicit LodTask(std::function<void()> wake = {}, std::size_t most_at_once = kMostAtOnce);

  void want(const LodRequest& request);
  void finish();  // waits for what is wanted
  void stop() { task_.cancel(); }
  void forget();  // the plans, when their file is closed
  // The levels that are there, and the plan that they were made of; empty at first.
  const LodFrame& frame() const { return frame_; }
  const LodRequest& made() const { return made_; }
  bool is_fresh() const { return made_ == wanted_; }

  static constexpr std::size_t kMostAtOnce = 200'000;  // rectangles; about 4 ms

 private:
  struct Result {
    LodFrame frame;
    std::string error;
  };
  void take();

  bool has_thread_;
  std::size_t most_at_once_;
  LodRequest wanted_, made_, asked_;
  LodFrame frame_;
  AwaitedTask<Result> task_;  // the last member: its destructor joins the thread first
};

}  // namespace tapedeck::viewer
