// All facts about the selection: type, place, reason, readers, clones, call site. Without a selection: facts about the plan. Of
// the node of the peak: all that is alive there, and what would lower the peak.
#pragma once

#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/plan/peak_help.h>
#include <tapedeck/viewer/planning/background_task.h>

#include <QtCore/QTimer>
#include <QtWidgets/QTextBrowser>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

namespace tapedeck::viewer {

// The facts as text with links to values and nodes.
class DetailsPanel : public QTextBrowser, public Observer {
 public:
  explicit DetailsPanel(Session& session, QWidget* parent = nullptr);
  ~DetailsPanel() override;

  void finish();         // waits for what would lower the peak, if that is shown; for unattended pictures
  bool settled() const;  // what would lower the peak is there, if it is to be shown
  // Writes the facts as CSV, and all that is alive where the text lists it. Throws FileError; UsageError if there is no plan,
  // or if what would lower the peak is not known yet.
  void write_csv(const std::string& path) const;
  const PeakHelp& peak_help() const { return help_; }
  std::function<void(NodeId, int)> on_region;  // a person asks to see a region of a node

  void opened() override { fill(); }
  void closed() override;
  void selection_changed() override { fill(); }
  void plan_changed() override { fill(); }

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void fill();
  bool lists_alive() const;        // of the selection: it is the plan, or the node of the peak
  std::string facts_html() const;  // without the list of what is alive
  void add_lines();
  std::span<const PlanRect> listed_rects() const;  // what the text lists; empty once another plan is shown
  bool shows_peak() const;                         // the node of the peak is selected, and the plan is final
  void ask_for_help();                             // in the background
  void arrived();                                  // takes what the background has handed over
  std::string help_html() const;

  Session& session_;
  std::uint64_t shown_model_ = 0;  // hovering does not change this panel
  std::uint64_t shown_measured_ = 0;
  Selection shown_;
  // Whether the text lists the rectangles that are alive at the peak, and how many it lists so far. A long list is written in
  // parts, so that the window does not wait for all of it.
  bool lists_alive_ = false;
  std::size_t listed_ = 0;
  QTimer more_;
  PeakHelp help_;
  std::uint64_t asked_model_ = 0;

  struct Mail {
    std::mutex mutex;
    std::optional<PeakHelp> help;
  };
  std::shared_ptr<Mail> mail_ = std::make_shared<Mail>();
  BackgroundTask task_;  // the last member: its destructor joins the thread first
};

}  // namespace tapedeck::viewer
