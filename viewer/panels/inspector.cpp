// The panel of the inspector. A click goes this way:
//
//   move() --> request() --> thread: the move, then the value --> arrived() --> take() --> headline, card, picture
//                                                                                |
//                                                                                +--> follow(): selects the node that ran last
#include <tapedeck/viewer/panels/inspector.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/plan/plan_unit.h>
#include <tapedeck/viewer/tables/document_csv.h>
#include <tapedeck/viewer/words/colours.h>
#include <tapedeck/viewer/words/format.h>

#include <tapedeck/capture/formats/atomic_write.h>

#include <fmt/format.h>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QVBoxLayout>

#include <utility>

namespace tapedeck::viewer {

InspectorPanel::InspectorPanel(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      step_([this] { QMetaObject::invokeMethod(this, guarded(this, [this] { arrived(); }), Qt::QueuedConnection); }) {
  auto *transport = new QHBoxLayout, *stops = new QHBoxLayout;
  make_transport(transport);
  make_stops(stops);
  headline_ = new QLabel;
  headline_->setTextFormat(Qt::PlainText);
  headline_->setWordWrap(true);
  picture_ = new ValuePicture;
  card_ = new QTextBrowser;
  card_->setOpenLinks(false);
  card_->setAccessibleName(QStringLiteral("what the selected value holds"));
  card_->setMinimumHeight(40);
  card_->setPlaceholderText(
      QStringLiteral("Once a step runs, the numbers of the selected value stand here: its range, how many elements are zero or "
                     "not finite, its first and last elements. Below stand a heat map and a histogram of them."));
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(4, 4, 4, 4);
  all->addLayout(transport);
  all->addLayout(stops);
  all->addWidget(headline_);
  all->addWidget(card_, 2);
  all->addWidget(picture_, 3);
  setMinimumHeight(90);  // as a table
  session_.attach(this);
  show_place();
  show_value();
}

InspectorPanel::~InspectorPanel() { session_.detach(this); }

QPushButton* InspectorPanel::make_button(const char* text, const char* help) {
  auto* button = new QPushButton(QString::fromUtf8(text));
  button->setToolTip(QString::fromUtf8(help));
  return button;
}

void InspectorPanel::make_transport(QHBoxLayout* row) {
  play_ = make_button("Play", "Run the step to its end; again: pause behind the node that runs (F5)");
  back_ = make_button("Back",
                      "Take the last node back: the state is as before the step, and the nodes before run again (Shift+F10)");
  next_ = make_button("Step", "Run the next node (F10)");
  to_node_ = make_button("To selection", "Run until the selected node has run, or go back to it (Ctrl+F10)");
  end_ = make_button("End", "End the step and let go of its bytes (Shift+F5)");
  connect(play_, &QPushButton::clicked, this, guarded(this, [this] { play_or_pause(); }));
  connect(end_, &QPushButton::clicked, this, guarded(this, [this] { end(); }));
  for (const auto& [button, how] : {std::pair{back_, StepMove::back}, {next_, StepMove::next}, {to_node_, StepMove::to_node}})
    connect(button, &QPushButton::clicked, this, guarded(this, [this, how = how] { move(how); }));
  for (QPushButton* button : {play_, back_, next_, to_node_, end_}) row->addWidget(button);
  row->addStretch(1);
}

// Where the step pauses by itself, and what the selection does then.
void InspectorPanel::make_stops(QHBoxLayout* row) {
  stops_at_nan_ = new QCheckBox(QStringLiteral("Stop at NaN"));
  stops_at_nan_->setToolTip(QStringLiteral("Pause behind the first node that makes a NaN"));
  stops_at_ = new QLineEdit;
  stops_at_->setPlaceholderText(QStringLiteral("Stop at: conv*"));
  stops_at_->setAccessibleName(QStringLiteral("names to stop at"));
  stops_at_->setToolTip(
      QStringLiteral("Pause behind each node whose op, module or value has this name; * stands for any characters, ? for one"));
  stops_at_->setClearButtonEnabled(true);
  stops_at_->setMaximumWidth(160);
  connect(stops_at_, &QLineEdit::returnPressed, this, guarded(this, [this] { move(StepMove::to_end); }));
  follows_ = new QCheckBox(QStringLiteral("Follow"));
  follows_->setToolTip(QStringLiteral("Select the node that has run last, in all panels; else the selected value stays"));
  follows_->setChecked(true);
  for (QWidget* w : std::initializer_list<QWidget*>{stops_at_nan_, stops_at_, follows_}) row->addWidget(w);
  row->addStretch(1);
}

QPushButton& InspectorPanel::button(StepMove how) {
  return how == StepMove::back ? *back_ : how == StepMove::next ? *next_ : how == StepMove::to_node ? *to_node_ : *play_;
}

void InspectorPanel::closed() {
  end();
  ended_.clear();
}

// The numbers of nodes and values are those of the plan that was shown when the step began.
void InspectorPanel::plan_changed() {
  if (!has_step()) return enable_buttons();
  if (step_.model() == session_.model()) return;
  end();
  ended_ = "The step has ended, because another plan is shown.";
  show_place();
}

void InspectorPanel::selection_changed() {
  enable_buttons();
  if (has_step() && !step_.busy() && !settled()) request(StepMove::stay);
}

bool InspectorPanel::settled() const {
  return !step_.busy() && !waiting_ && (!has_step() || session_.selection().value == asked_value_);
}

void InspectorPanel::move(StepMove how) {
  if (session_.model() == nullptr || (how == StepMove::to_node && session_.selection().node == kNone)) return;
  if (step_.busy())
    waiting_ = how;
  else
    request(how);
}

void InspectorPanel::play_or_pause() {
  if (moves())
    step_.pause();
  else
    move(StepMove::to_end);
}

void InspectorPanel::request(StepMove how) {
  const Selection& selected = session_.selection();
  const StepRequest wanted{how, selected.node, stops_at_nan_->isChecked(), stops_at_->text().toStdString(), selected.value};
  last_move_ = how;
  asked_value_ = selected.value;
  ended_.clear();
  if (has_step())
    step_.go(wanted);
  else
    step_.begin(session_.shared_model(), session_.document()->path, wanted);
  show_place();
}

void InspectorPanel::end() {
  step_.end();
  at_ = {};
  asked_value_ = kNone;
  waiting_.reset();
  ended_.clear();
  show_place();
  show_value();
}

void InspectorPanel::arrived() { take(step_.take()); }

void InspectorPanel::take(std::optional<PausedStep::Result> result) {
  if (!result) return;
  if (!result->begun) {
    end();
    at_.error = std::move(result->error);
    return show_place();
  }
  const StepMove done = last_move_;
  if (done == StepMove::stay) result->stop = at_.stop;
  at_ = std::move(*result);
  if (waiting_)
    request(*std::exchange(waiting_, std::nullopt));
  else if (done != StepMove::stay)
    follow();
  if (!step_.busy() && !settled()) request(StepMove::stay);
  show_place();
  show_value();
}

// The selection goes with the step, and then the value of the node is looked at.
void InspectorPanel::follow() {
  if (at_.error.empty() && follows_->isChecked() && at_.behind != kNone) session_.select_node(at_.behind);
}

void InspectorPanel::finish() {
  while (step_.busy()) take(step_.wait());
}

std::string InspectorPanel::place_text() const {
  if (moves()) return "The step runs…";
  if (!at_.error.empty()) return at_.error;
  if (!has_step())
    return ended_.empty() ? "No step has begun. Step runs one node, Play runs them all, and To selection runs until the "
                            "selected node has run."
                          : ended_;
  const PlanModel& model = *step_.model();
  const std::int32_t all = model.graph().node_count();
  std::string text = at_.done == 0     ? fmt::format("Before the first of {} nodes.", grouped(all))
                     : at_.done == all ? fmt::format("At the end: all {} nodes have run.", grouped(all))
                                       : fmt::format("Behind {}: {} of {} nodes have run.",
                                                     node_title(model.graph(), at_.behind), grouped(at_.done), grouped(all));
  if (at_.stop.reason == StopReason::not_finite)
    text += fmt::format(" Stopped at a NaN: element {} of %{}.", grouped(at_.stop.element),
                        model.graph().value_name(at_.stop.value));
  if (at_.stop.reason == StopReason::pause) text += " Paused.";
  if (at_.kept > 0)
    text += fmt::format(" {} of the state before the step are kept.", unit_of(model.plan()).readable_text(at_.kept));
  if (at_.stand_ins > 0)
    text +=
        fmt::format(" The file lacks {} value{}, for which there are stand-ins.", at_.stand_ins, at_.stand_ins == 1 ? "" : "s");
  return text;
}

void InspectorPanel::show_place() {
  headline_->setText(QString::fromStdString(place_text()));
  enable_buttons();
}

bool InspectorPanel::shows_value() const {
  const ValueId v = at_.seen.value;
  return has_step() && v != kNone && v < step_.model()->graph().value_count();
}

void InspectorPanel::show_value() {
  const LookedAt& seen = at_.seen;
  if (!shows_value()) {
    card_->setPlainText(has_step() ? QStringLiteral("Select a value to see what it holds.") : QString());
    return picture_->clear();
  }
  const ValueFacts facts = explain_value(*step_.model(), seen.value);
  std::string html = "<b>" + escaped_html(facts.name) + "</b> <span style='color:" + html_colour(colours::kFaint) + "'>" +
                     escaped_html(facts.type + ", " + facts.op) + "</span>";
  for (const std::string& sentence : sentences_of(seen, unit_of(step_.model()->plan())))
    html += "<br>" + escaped_html(grouped_numbers(sentence));
  if (seen.error.empty()) html += "<pre>" + escaped_html(seen.numbers) + "</pre>";
  card_->setHtml(QString::fromStdString(html));
  picture_->show_value(seen);
}

// The numbers of a value as lines of CSV: its sentences, its elements as the card shows them, and a line for each bar of the
// histogram.
std::string InspectorPanel::value_csv() const {
  const LookedAt& seen = at_.seen;
  if (!shows_value()) return "";
  const ValueFacts facts = explain_value(*step_.model(), seen.value);
  std::string csv = fact_csv(facts.name, "type", facts.type) + fact_csv(facts.name, "op", facts.op);
  for (const std::string& sentence : sentences_of(seen, unit_of(step_.model()->plan())))
    csv += fact_csv(facts.name, "", grouped_numbers(sentence));
  if (!seen.error.empty()) return csv;
  csv += fact_csv(facts.name, "elements", seen.numbers);
  for (std::size_t bin = 0; bin < seen.histogram.counts.size(); ++bin)
    csv +=
        fact_csv("Histogram of " + facts.name, fmt::format("{} to {}", seen.histogram.edge(bin), seen.histogram.edge(bin + 1)),
                 std::to_string(seen.histogram.counts[bin]));
  return csv;
}

void InspectorPanel::write_csv(const std::string& path) const {
  AtomicWriter out(path);
  out.write(kFactsHeader + fact_csv("Step", "place", place_text()) + value_csv());
  out.commit();
}

void InspectorPanel::enable_buttons() {
  const bool can = session_.model() != nullptr;
  play_->setText(moves() ? QStringLiteral("Pause") : QStringLiteral("Play"));
  play_->setEnabled(can);
  next_->setEnabled(can);
  to_node_->setEnabled(can && session_.selection().node != kNone);
  back_->setEnabled(can && has_step() && at_.done > 0);
  end_->setEnabled(has_step());
}

}  // namespace tapedeck::viewer
