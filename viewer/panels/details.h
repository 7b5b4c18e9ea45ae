// All facts about the selection: type, place, reason, readers, clones, call site. Without a selection: facts about the plan.
#pragma once

#include <tapedeck/viewer/model/session.h>

#include <QtCore/QTimer>
#include <QtWidgets/QTextBrowser>

#include <vector>

namespace tapedeck::viewer {

// The facts as text with links to values and nodes.
class DetailsPanel : public QTextBrowser, public Observer {
 public:
  explicit DetailsPanel(Session& session, QWidget* parent = nullptr);
  ~DetailsPanel() override;

  void opened() override { fill(); }
  void closed() override;
  void selection_changed() override { fill(); }
  void plan_changed() override { fill(); }

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void fill();
  void add_lines();

  Session& session_;
  std::uint64_t shown_model_ = 0;  // hovering does not change this panel
  std::uint64_t shown_measured_ = 0;
  Selection shown_;
  // The rectangles that are alive at the peak. A long list is written in parts, so that the window does not wait for all of it.
  std::vector<PlanRect> alive_;
  std::size_t listed_ = 0;
  QTimer more_;
};

}  // namespace tapedeck::viewer
