// The table of nodes with its filter; the selected row is the selected node.
#pragma once

#include <tapedeck/viewer/model/session.h>

#include <QtWidgets/QWidget>

class QLabel;
class QLineEdit;
class QTreeView;

namespace tapedeck::viewer {

class NodesPanel : public QWidget, public Observer {
 public:
  explicit NodesPanel(Session& session, QWidget* parent = nullptr);
  ~NodesPanel() override;

  void opened() override {}
  void closed() override;
  void selection_changed() override;
  void plan_changed() override;

  QLineEdit* filter() { return filter_; }
  QTreeView* table() { return table_; }
  NodeId node_at(int row) const;  // what the table shows there; kNone beyond the end
  int row_of(NodeId n) const;     // -1: filtered out

 private:
  class Rows;
  void refill();

  Session& session_;
  Rows* rows_;
  QLineEdit* filter_;
  QLabel* count_;
  QTreeView* table_;
  std::uint64_t shown_ = 0;  // serial of the model in the table
  bool following_ = false;   // the table is following the session: do not answer back
};

}  // namespace tapedeck::viewer
