// The panel of a table of the plan. Nodes, values, parameters and decisions are this class with another table.
#pragma once

#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/tables/filtered_table.h>

#include <cstdint>

namespace tapedeck::viewer {

// A click on a row selects its node or value in the session, and a selection elsewhere marks and shows its row.
class TablePanel : public FilteredTable, public Observer {
 public:
  TablePanel(TableId id, Session& session, QWidget* parent = nullptr);
  ~TablePanel() override;

  void opened() override {}
  void closed() override;
  void selection_changed() override;
  void plan_changed() override;
  void finish() override;  // a table that nobody sees is filled, too

  TableId id() const { return id_; }
  NodeId node_at(int place) const;  // of the table of nodes; kNone beyond the last row
  int row_of(NodeId n) const;       // -1 if the filter hides the node

 protected:
  void filter_changed() override { refill(); }
  void row_chosen(int place) override;
  void row_hovered(int place) override;
  void row_activated() override {
    if (!is_stale()) session_.fit_selection();
  }
  void order_changed() override { selection_changed(); }
  void paintEvent(QPaintEvent* event) override;

 private:
  PlanRows& plan_rows() { return static_cast<PlanRows&>(rows()); }
  // The rows are those of the plan before: the large table of this one is still being arranged.
  bool is_stale() { return plan_rows().shown_model() != session_.model(); }
  void refill();
  void fill(bool later);
  void fill_if_owed();
  int place_of_selection();

  TableId id_;
  Session& session_;
  std::uint64_t shown_ = 0;           // the serial number of the model in the table
  std::uint64_t shown_measured_ = 0;  // and that of the measurements
  bool owed_ = false;                 // a large table is filled once somebody sees it: a view of a million rows takes its time
};

}  // namespace tapedeck::viewer
