// The price of memory in time: the cost of plans over their peaks. The points of the strategy that plans here come from the
// archive of known plans and grow while nobody waits; the curves of all strategies, and the bound below which no plan can be,
// are worked out in the background when the panel is first seen. A click takes the plan under the mouse.
#pragma once

#include <tapedeck/viewer/model/tradeoff_points.h>
#include <tapedeck/viewer/panels/plot.h>
#include <tapedeck/viewer/planning/background_task.h>

#include <tapedeck/capture/planner/tradeoff.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck::viewer {

class TradeoffPanel : public PicturePanel {
 public:
  explicit TradeoffPanel(Session& session) : PicturePanel(session) {}

  void draw(float width, float height) override;
  void closed() override;
  void plan_changed() override;
  void finish() override;  // waits for the curves
  void stop() override;
  bool has_curves() const { return curves_.has_value(); }
  const std::optional<Tradeoff>& curves() const { return curves_; }
  // The known points and the curves, a line for each; throws FileError.
  void write_csv(const std::string& path) override;
  ImVec2 place_of(std::int64_t peak, double ratio) const;  // on the canvas in the last frame, for tests

 private:
  struct Mail {
    std::mutex mutex;
    std::optional<Tradeoff> curves;
    std::string error;
  };

  std::vector<KnownPlan> known_or_automatic() const;
  void start();                                           // the work for the curves, unless it runs or is done
  void arrive();                                          // takes what the background has handed over
  float draw_names(float x, float y, float width) const;  // of the strategies; returns the height used
  void lay_out(float top, float width, float height);
  void draw_axes() const;
  void draw_curves();
  void draw_known();
  void draw_now();
  void draw_list(float x, float y, float width, float height) const;
  void hover();

  Plot plot_;
  std::optional<Tradeoff> curves_;
  std::string error_;
  std::vector<Wish> curves_wishes_;  // with which the curves were worked out
  bool started_ = false, pressed_ = false;
  std::vector<KnownPlan> points_;    // of the list and the white curve, in the last frame
  std::vector<TradeoffMark> marks_;  // all points of the last frame
  std::shared_ptr<Mail> mail_ = std::make_shared<Mail>();
  BackgroundTask task_{BackgroundTask::Pace::gives_way};  // the last member: its destructor joins the thread first
};

}  // namespace tapedeck::viewer
