// What recomputation costs: for the selected value whether it is kept or made again, how often, why, and what the other choice
// would cost, with buttons that make a wish of it; below, the values that cost most.
#pragma once

#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/model/value_facts.h>
#include <tapedeck/viewer/planning/background_task.h>

#include <QtWidgets/QWidget>

#include <memory>
#include <mutex>
#include <optional>

class QLabel;
class QPushButton;
class QTextBrowser;
class QTreeWidget;
class QTreeWidgetItem;

namespace tapedeck::viewer {

// The panel. The decision log and the prices come from a thread of its own.
class RecomputePanel : public QWidget, public Observer {
 public:
  explicit RecomputePanel(Session& session, QWidget* parent = nullptr);
  ~RecomputePanel() override;

  void opened() override {}
  void closed() override;
  void selection_changed() override;
  void plan_changed() override;

  QTextBrowser* card() { return card_; }
  QTreeWidget* table() { return table_; }
  QPushButton* keep_button() { return keep_; }
  QPushButton* recompute_button() { return recompute_; }
  QPushButton* may_button() { return may_; }
  bool settled() const;  // the log and both prices of what is shown are there
  const PlanLog* log() const { return log_.get(); }
  const ValuePrices& prices() const { return prices_; }

 private:
  void make_buttons();
  void make_table();
  void work();     // in the background: the log of the shown plan, then the prices of the selected value
  void arrived();  // takes what the background has handed over
  void fill_card();
  void fill_table();
  void mark_row();
  void wish(std::optional<WishKind> kind);
  const ValueEntry* selected() const;

  Session& session_;
  QTextBrowser* card_;
  QPushButton *keep_, *recompute_, *may_;
  QTreeWidget* table_;
  QLabel* note_;
  std::uint64_t worked_model_ = 0;
  ValueId worked_value_ = kNone;
  bool worked_final_ = false;
  std::shared_ptr<const PlanLog> log_;
  ValuePrices prices_;
  bool following_ = false;

  struct Mail {
    std::mutex mutex;
    std::shared_ptr<const PlanLog> log;
    std::optional<ValuePrices> prices;
  };
  std::shared_ptr<Mail> mail_ = std::make_shared<Mail>();
  BackgroundTask task_;  // the last member: its destructor joins the thread first
};

}  // namespace tapedeck::viewer
