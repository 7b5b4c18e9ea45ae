// All facts about the selection: type, place, reason, readers, clones, call site. Without a selection: facts about the plan.
#pragma once

#include <tapedeck/viewer/model/session.h>

#include <QtWidgets/QTextBrowser>

namespace tapedeck::viewer {

// The facts as text with links to values and nodes.
class DetailsPanel : public QTextBrowser, public Observer {
 public:
  explicit DetailsPanel(Session& session, QWidget* parent = nullptr);
  ~DetailsPanel() override;

  void opened() override { fill(); }
  void closed() override { clear(); }
  void selection_changed() override { fill(); }
  void plan_changed() override { fill(); }

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void fill();

  Session& session_;
  std::uint64_t shown_model_ = 0;  // hovering does not change this panel
  Selection shown_;
};

}  // namespace tapedeck::viewer
