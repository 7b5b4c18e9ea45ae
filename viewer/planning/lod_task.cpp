#include <tapedeck/viewer/planning/lod_task.h>

#include <utility>

namespace tapedeck::viewer {

namespace {

void make_lod_of(const LodRequest& request, LodFrame* frame) {
  static const TimeAxis by_node;
  make_lod(request.model->rects(), request.view, request.width, request.height, request.axis ? *request.axis : by_node, frame);
}

}  // namespace

LodTask::LodTask(std::function<void()> wake, std::size_t most_at_once)
    : has_thread_(static_cast<bool>(wake)), most_at_once_(most_at_once), task_(std::move(wake)) {}

void LodTask::take() {
  if (std::optional<Result> result = task_.take()) {
    frame_ = std::move(result->frame);
    made_ = asked_;
  }
}

// A request under way is waited for: while the hand moves, the newest view is taken up next.
void LodTask::want(const LodRequest& request) {
  wanted_ = request;
  take();
  if (is_fresh()) return;
  if (!has_thread_ || request.model->rects().size() <= most_at_once_) {
    task_.cancel();
    make_lod_of(request, &frame_);
    made_ = request;
    return;
  }
  if (task_.busy()) return;
  asked_ = request;
  task_.start([request](const std::atomic<bool>&) {
    Result result;
    make_lod_of(request, &result.frame);
    return result;
  });
}

void LodTask::finish() {
  while (!is_fresh() && wanted_.model) {
    want(wanted_);
    if (std::optional<Result> result = task_.wait()) {
      frame_ = std::move(result->frame);
      made_ = asked_;
    }
  }
}

void LodTask::forget() {
  task_.cancel();
  wanted_ = made_ = asked_ = LodRequest();
  frame_ = LodFrame();
}

}  // namespace tapedeck::viewer
