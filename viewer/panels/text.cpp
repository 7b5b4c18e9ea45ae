// The panel of the text. A change of the plan goes this way, if the panel can be seen:
//
//   refresh() --> ask() --> thread: pass_texts (once for a document), with_plan --> mail --> arrived() --> steps, text
#include <tapedeck/viewer/panels/text.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/plan/plan_unit.h>
#include <tapedeck/viewer/words/format.h>
#include <tapedeck/viewer/words/glossary.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/viewer/drawing/theme.h>

#include <QtGui/QKeyEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QTreeWidget>
#include <QtWidgets/QVBoxLayout>

#include <algorithm>
#include <utility>

namespace tapedeck::viewer {

namespace {

QString qt(const std::string& text) { return QString::fromStdString(text); }

// A field in which Return goes to the next match and Shift+Return to the one before.
class FindField : public QLineEdit {
 public:
  explicit FindField(std::function<void(int)> step) : step_(std::move(step)) {}

 protected:
  void keyPressEvent(QKeyEvent* event) override {
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter)
      return step_(event->modifiers() & Qt::ShiftModifier ? -1 : 1);
    QLineEdit::keyPressEvent(event);
  }

 private:
  std::function<void(int)> step_;
};

// A line that ends in dots where there is no room for all of it; its tooltip has the rest.
class CutLabel : public QLabel {
 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter(this).drawText(rect(), Qt::AlignLeft | Qt::AlignVCenter,
                            fontMetrics().elidedText(text(), Qt::ElideRight, width()));
  }
};

bool is_digits(const std::string& word) {
  return word.size() > 1 && std::all_of(word.begin() + 1, word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

ByteUnit shown_unit(const Session& session) {
  return session.model() != nullptr ? unit_of(session.model()->plan()) : ByteUnit();
}

// The sentence of a step in the tooltip of its row.
std::string step_tooltip(const StepText& step, const ByteUnit& unit) {
  std::string text = step.record.name + ": " + step.doc + ".\n" + change_text(step);
  if (!step.before) return text + ", at most " + unit.readable_text(step.record.bytes_after) + " alive at once";
  return text + "\n" + grouped(step.record.nodes_before) + " -> " + grouped(step.record.nodes_after) + " nodes, " +
         unit.readable_text(step.record.bytes_before) + " -> " + unit.readable_text(step.record.bytes_after) + " alive at once";
}

}  // namespace

TextPanel::TextPanel(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  auto* split = new QSplitter(Qt::Horizontal);
  auto *left = new QWidget, *right = new QWidget;
  make_left(left);
  make_bar(right);
  split->addWidget(left);
  split->addWidget(right);
  split->setStretchFactor(1, 1);
  split->setSizes({280, 700});
  split->setChildrenCollapsible(false);
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(4, 4, 4, 4);
  all->addWidget(split);
  session_.attach(this);
}

TextPanel::~TextPanel() {
  task_.cancel();
  session_.detach(this);
}

void TextPanel::make_left(QWidget* side) {
  steps_ = new QTreeWidget;
  steps_->setAccessibleName(QStringLiteral("steps from the capture to the plan"));
  steps_->setRootIsDecorated(false);
  steps_->setUniformRowHeights(true);
  steps_->setColumnCount(3);
  steps_->setHeaderLabels({QStringLiteral("Step"), QStringLiteral("Nodes"), QStringLiteral("Live")});
  steps_->header()->setStretchLastSection(false);
  steps_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  for (const int column : {1, 2}) steps_->header()->setSectionResizeMode(column, QHeaderView::ResizeToContents);
  for (const auto& [column, term] : {std::pair{0, "text step"}, {1, "text nodes"}, {2, "text live"}})
    steps_->headerItem()->setToolTip(column, tooltip_of(explain_term(term)));
  connect(steps_, &QTreeWidget::currentItemChanged, this, guarded(this, [this] { show_step(); }));
  connect(steps_, &QTreeWidget::itemPressed, this, guarded(this, [this] {
            chosen_by_hand_ = true;
            show_changes(true);
          }));
  auto* column = new QVBoxLayout(side);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(steps_);
}

void TextPanel::make_bar(QWidget* side) {
  headline_ = new CutLabel;
  headline_->setTextFormat(Qt::PlainText);
  headline_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  changes_ = new QCheckBox(QStringLiteral("Changes only"));
  changes_->setToolTip(
      QStringLiteral("Show the lines that the step changed, with a few around them, instead of the whole text: "
                     "+ added, - removed, ~ as it was and as it is, < moved from here, > moved to here"));
  find_ = new FindField([this](int by) {
    code_->step_match(by);
    show_matches();
  });
  find_->setPlaceholderText(QStringLiteral("Find (Ctrl+F)"));
  find_->setAccessibleName(QStringLiteral("find in the text"));
  find_->setClearButtonEnabled(true);
  find_->setMaximumWidth(200);
  matches_ = new QLabel;
  code_ = new CodeView;
  code_->on_click = [this](const CodeView::Place& place) {
    is_clicked_ = true;  // the text stays where it is
    click_on(place);
    is_clicked_ = false;
  };
  code_->on_hover = [this](const CodeView::Place& place) { session_.hover(value_of(place)); };
  code_->explain = [this](const CodeView::Place& place) { return explanation(place); };
  code_->on_find = [this] { begin_find(); };
  connect(changes_, &QCheckBox::toggled, this, guarded(this, [this] { show_step(); }));
  connect(find_, &QLineEdit::textChanged, this, guarded(this, [this](const QString& text) { look_for(text); }));
  auto* row = new QHBoxLayout;
  row->addWidget(headline_, 1);
  row->addWidget(changes_);
  row->addWidget(find_);
  row->addWidget(matches_);
  auto* column = new QVBoxLayout(side);
  column->setContentsMargins(0, 0, 0, 0);
  column->addLayout(row);
  column->addWidget(code_, 1);
}

// ---- texts ----

void TextPanel::closed() {
  task_.cancel();
  {
    std::lock_guard lock(mail_->mutex);
    mail_->texts.reset();
  }
  texts_ = std::make_shared<const StepTexts>();
  passes_.reset();
  passes_of_ = nullptr;
  shown_model_ = asked_model_ = 0;
  chosen_by_hand_ = false;
  error_.clear();
  steps_->clear();
  code_->show_rows({});
  headline_->clear();
}

void TextPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  refresh();
}

void TextPanel::refresh() {
  if (isVisible()) ask();
}

bool TextPanel::settled() const {
  return session_.model() != nullptr && !session_.solving() && shown_model_ == session_.model()->serial();
}

// The text of a plan that is still being improved would be out of date at once.
void TextPanel::ask() {
  if (session_.model() == nullptr || session_.solving() || asked_model_ == session_.model()->serial()) return;
  asked_model_ = session_.model()->serial();
  if (passes_of_ != session_.document()) passes_.reset();
  passes_of_ = session_.document();
  if (texts_->empty()) headline_->setText(QStringLiteral("writing the text…"));
  const Document& document = *session_.document();
  task_.run([this, mail = mail_, model = session_.shared_model(), passes = passes_, captured = document.captured,
             options = document.options](const std::atomic<bool>& cancelled) {
    Texts texts{model->serial(), passes, nullptr, ""};
    try {
      if (!texts.passes) texts.passes = pass_texts(*captured, options, &cancelled);
      texts.all = with_plan(*texts.passes, model->plan());
    } catch (const Cancelled&) {
      return;
    } catch (const std::exception& error) {
      texts.error = error.what();
    }
    if (cancelled) return;
    {
      std::lock_guard lock(mail->mutex);
      mail->texts = std::move(texts);
    }
    QMetaObject::invokeMethod(this, guarded(this, [this] { arrived(); }), Qt::QueuedConnection);
  });
}

void TextPanel::finish() {
  ask();
  task_.wait();
  arrived();
}

void TextPanel::arrived() {
  std::optional<Texts> texts;
  {
    std::lock_guard lock(mail_->mutex);
    texts = std::exchange(mail_->texts, std::nullopt);
  }
  if (!texts || texts->model != asked_model_) return;
  shown_model_ = texts->model;
  passes_ = std::move(texts->passes);
  error_ = std::move(texts->error);
  if (texts->all) texts_ = std::move(texts->all);
  fill_steps();
}

bool TextPanel::is_plan(int step) const { return step >= 0 && step + 1 == std::ssize(*texts_); }
int TextPanel::step() const { return steps_->indexOfTopLevelItem(steps_->currentItem()); }
bool TextPanel::shows_changes() const { return changes_->isChecked(); }
void TextPanel::show_changes(bool on) { changes_->setChecked(on); }

void TextPanel::choose_step(int step) {
  chosen_by_hand_ = true;
  steps_->setCurrentItem(steps_->topLevelItem(step));
}

void TextPanel::fill_steps() {
  const int before = chosen_by_hand_ ? step() : -1;
  const ByteUnit unit = shown_unit(session_);
  steps_->blockSignals(true);
  steps_->clear();
  for (const StepText& step : *texts_) {
    const bool first = !step.before;
    auto* item =
        new QTreeWidgetItem({qt(step.record.name), qt(first ? grouped(step.record.nodes_after) : won_nodes(step.record)),
                             qt(first ? unit.readable_text(step.record.bytes_after) : won_bytes(step.record, unit))});
    for (const int column : {1, 2}) item->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    for (const int column : {0, 1, 2}) {
      item->setToolTip(column, tooltip_of(step_tooltip(step, unit)));
      if (!first && !step.diff) item->setForeground(column, qt(colours::kFaint));
    }
    steps_->addTopLevelItem(item);
  }
  const int count = steps_->topLevelItemCount();
  steps_->setCurrentItem(count == 0 ? nullptr : steps_->topLevelItem(before >= 0 && before < count ? before : count - 1));
  steps_->blockSignals(false);
  show_step();
}

void TextPanel::show_step() {
  const int at = step();
  if (!error_.empty()) headline_->setText(qt(error_));
  if (at < 0) return;
  const StepText& chosen = (*texts_)[static_cast<std::size_t>(at)];
  const bool changes = shows_changes() && chosen.diff;
  code_->show_rows(TextRows(chosen.before, chosen.after, changes ? chosen.diff : nullptr, changes));
  if (error_.empty()) headline_->setText(qt(chosen.record.name + ": " + change_text(chosen) + " · " + chosen.doc));
  headline_->setToolTip(tooltip_of(step_tooltip(chosen, shown_unit(session_))));
  if (changes) code_->step_change(1);
  revealed_value_ = changes ? session_.selection().value : kNone;
  revealed_node_ = changes ? session_.selection().node : kNone;
  selection_changed();
  show_matches();
}

// ---- selection ----

// A word selects its value; anything else in the text of the plan selects the node of its line.
void TextPanel::click_on(const CodeView::Place& place) {
  if (const ValueId v = value_of(place); v != kNone) return session_.select_value(v);
  if (place.is_old || !is_plan(step()) || !settled()) return;
  if (const NodeId n = code_->rows().after()->node_of(place.line); n != kNone) session_.select_node(n);
}

// A number stands for a value without a name. Between the passes such numbers shift, so there they name nothing.
ValueId TextPanel::value_of(const CodeView::Place& place) const {
  if (place.kind != WordKind::value || session_.model() == nullptr || step() < 0) return kNone;
  const StepText& chosen = (*texts_)[static_cast<std::size_t>(step())];
  const GraphText& text = place.is_old ? *chosen.before : *chosen.after;
  if (text.is_nested(place.line)) return kNone;
  const Graph& graph = session_.model()->graph();
  if (!is_digits(place.word) || (is_plan(step()) && !place.is_old)) return value_named(graph, place.word);
  return step() <= 1 ? value_named(graph, "%v" + place.word.substr(1)) : kNone;
}

std::string TextPanel::word_in_text(ValueId v) const {
  if (v == kNone || step() < 0) return "";
  if (is_plan(step())) return word_of_value(session_.model()->graph(), v);
  const std::string word = "%" + session_.model()->values().entry(v).name;
  const GraphText& text = *(*texts_)[static_cast<std::size_t>(step())].after;
  if (step() == 0 && word.starts_with("%v") && is_digits("%" + word.substr(2)) && line_defining(text, word) < 0)
    return "%" + word.substr(2);
  return word;
}

void TextPanel::selection_changed() {
  if (step() < 0 || session_.model() == nullptr || shown_model_ != session_.model()->serial()) return;
  const Selection& selection = session_.selection();
  const std::string selected = word_in_text(selection.value);
  const GraphText& text = *code_->rows().after();
  std::int32_t line = -1;
  if (is_plan(step()) && selection.node != kNone && selection.node < text.nodes())
    line = text.line_of(selection.node);
  else if (!selected.empty())
    line = line_defining(text, selected);
  code_->mark(selected, line, word_in_text(selection.hovered));
  const bool is_other = selection.value != revealed_value_ || selection.node != revealed_node_;  // not only hovered
  revealed_value_ = selection.value;
  revealed_node_ = selection.node;
  if (line >= 0 && is_other && !is_clicked_) code_->reveal_line(line);
}

QString TextPanel::explanation(const CodeView::Place& place) const {
  if (place.kind == WordKind::op)
    if (const Op* op = find_op(place.word); op != nullptr) return tooltip_of(place.word + ": " + op->doc);
  if (place.kind == WordKind::note) return tooltip_of("Notes: where the node comes from. Erasing them changes no result.");
  const ValueId v = value_of(place);
  if (v == kNone) return QString();
  const ValueFacts facts = explain_value(*session_.model(), v);
  return tooltip_of(facts.name + ": " + facts.type + ", " + unit_of(session_.model()->plan()).exact_text(facts.bytes) + ", " +
                    role_class_name(facts.role) + "\n" + facts.reason + "\n" + facts.decision);
}

// ---- looking for text and changes ----

void TextPanel::begin_find() {
  find_->setFocus(Qt::ShortcutFocusReason);
  find_->selectAll();
}

void TextPanel::look_for(const QString& text) {
  code_->find(text.toStdString());
  show_matches();
}

void TextPanel::show_matches() {
  const std::int32_t count = code_->find_count(), at = code_->match();
  if (find_->text().isEmpty())
    matches_->clear();
  else if (at >= 0)
    matches_->setText(qt(grouped(at + 1) + " of " + grouped(count)));
  else
    matches_->setText(qt(count == 1 ? "1 line" : grouped(count) + " lines"));
}

void TextPanel::go_to_change(int by) {
  if (step() < 0) return;
  if (!shows_changes()) return show_changes(true);
  code_->step_change(by);
}

void TextPanel::write_csv(const std::string& path) {
  if (session_.model() == nullptr) throw UsageError("there is no plan to write");
  finish();
  AtomicWriter out(path);
  out.write(steps_csv(*texts_));
  out.commit();
}

}  // namespace tapedeck::viewer
