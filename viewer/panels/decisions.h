// The list of values that the strategy recomputes, in the order of its decisions, with the reasons.
#pragma once

#include <tapedeck/viewer/model/session.h>

#include <QtWidgets/QTreeWidget>

namespace tapedeck::viewer {

// One row per decision. A click on a row selects the value.
class DecisionsPanel : public QTreeWidget, public Observer {
 public:
  explicit DecisionsPanel(Session& session, QWidget* parent = nullptr);
  ~DecisionsPanel() override;

  void opened() override {}
  void closed() override;
  void selection_changed() override;
  void plan_changed() override;

 private:
  Session& session_;
  std::uint64_t shown_ = 0;  // the serial number of the shown model
  bool following_ = false;
};

}  // namespace tapedeck::viewer
