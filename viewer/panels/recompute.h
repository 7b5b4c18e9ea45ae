// The cost of recomputation: for the selected value whether it is kept or made again, how often, why, and what the other choice
// would cost, with buttons that make a wish of it; below, the values that cost most.
#pragma once

#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/model/value_prices.h>
#include <tapedeck/viewer/panels/table.h>
#include <tapedeck/viewer/planning/background_task.h>
#include <tapedeck/viewer/planning/prepared_search.h>

#include <QtWidgets/QWidget>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

class QLabel;
class QPushButton;
class QTextBrowser;

namespace tapedeck::viewer {

// The panel. The prices come from a thread of its own, while a person can see the panel: they take a search.
class RecomputePanel : public QWidget, public Observer {
 public:
  explicit RecomputePanel(Session& session, QWidget* parent = nullptr);
  ~RecomputePanel() override;

  void opened() override {}
  void closed() override;
  void selection_changed() override { refresh(); }
  void plan_changed() override { refresh(); }

  QTextBrowser* card() { return card_; }
  TablePanel& table() { return *table_; }  // of values, those whose further runs cost most first
  QPushButton* keep_button() { return keep_; }
  QPushButton* recompute_button() { return recompute_; }
  QPushButton* may_button() { return may_; }
  // The search that gave the price of exactly these wishes, once; null if there is none.
  std::unique_ptr<PreparedSearch> take_search(const std::vector<Wish>& wishes);
  void finish();         // waits for the prices; for unattended pictures
  bool settled() const;  // both prices of what is shown are there
  const ValuePrices& prices() const { return prices_; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  void make_buttons();
  void make_table();
  void refresh();
  bool is_seen() const;
  void ask_for_prices();  // of the selected value, in the background
  void stop_asking();
  void show_buttons();
  void arrived();  // takes what the background has handed over
  void fill_card();
  void wish(std::optional<WishKind> kind);
  const ValueEntry* selected() const;
  bool can_wish() const;
  bool has_prices() const;

  Session& session_;
  QTextBrowser* card_;
  QPushButton *keep_, *recompute_, *may_;
  TablePanel* table_;
  QLabel* note_;
  std::uint64_t asked_model_ = 0;
  ValueId asked_value_ = kNone;
  ValuePrices prices_;
  bool finishing_ = false;  // for a picture of the panel, which nobody sees
  bool stale_ = false;      // something changed that the panel does not show, because it could not be seen
  std::shared_ptr<std::atomic<bool>> cancel_search_;  // of the search under way
  std::unique_ptr<PreparedSearch> search_;            // of the price that is shown

  struct Mail {
    std::mutex mutex;
    std::optional<ValuePrices> prices;
    std::unique_ptr<PreparedSearch> search;
  };
  std::shared_ptr<Mail> mail_ = std::make_shared<Mail>();
  BackgroundTask task_;  // the last member: its destructor joins the thread first
};

}  // namespace tapedeck::viewer
