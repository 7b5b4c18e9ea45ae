// The panel of recomputation. A change of the plan or of the selection goes this way:
//
//   work() --> thread: make_log, price_alone, price_anew --> mail --> arrived() --> card, table
#include <tapedeck/viewer/panels/recompute.h>

#include <tapedeck/viewer/messages.h>
#include <tapedeck/viewer/model/explain.h>
#include <tapedeck/viewer/model/format.h>
#include <tapedeck/viewer/model/wish_history.h>

#include <tapedeck/capture/plan/wished_values.h>

#include <fmt/format.h>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QTreeWidget>
#include <QtWidgets/QVBoxLayout>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::viewer {

namespace {

enum Column { kValue, kChoice, kRuns, kBytes, kAgain, kOnce, kRule, kColumns };

struct ColumnText {
  const char* title;
  const char* help;
  int width;
};
constexpr ColumnText kTexts[kColumns] = {
    {"value", "The name of the value; all copies of it have one row", 150},
    {"choice", "kept: its bytes stay until its last reader. recomputed: they are freed, and its node runs again", 84},
    {"runs", "How often its node runs in a step", 44},
    {"bytes", "Of one copy", 78},
    {"again", "What the further runs of its node cost in a step", 78},
    {"one run", "What one run of its node costs", 78},
    {"why", "The rule that decided", 420},
};
constexpr std::size_t kMostRows = 1000;

// Rows sort by numbers, not by their texts.
class Row : public QTreeWidgetItem {
 public:
  bool operator<(const QTreeWidgetItem& other) const override {
    const int column = treeWidget() != nullptr ? treeWidget()->sortColumn() : 0;
    const QVariant a = data(column, Qt::UserRole), b = other.data(column, Qt::UserRole);
    if (a.isValid() && b.isValid()) return a.toDouble() < b.toDouble();
    return text(column) < other.text(column);
  }
};

QTreeWidgetItem* make_row(const ValueEntry& e) {
  auto* row = new Row;
  const auto text = [&](Column column, const std::string& shown) { row->setText(column, QString::fromStdString(shown)); };
  const auto number = [&](Column column, double value, const std::string& shown) {
    text(column, shown);
    row->setData(column, Qt::UserRole, value);
    row->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
  };
  text(kValue, "%" + e.name);
  text(kChoice, value_choice_name(e.choice));
  number(kRuns, static_cast<double>(e.runs.size()), std::to_string(e.runs.size()));
  number(kBytes, static_cast<double>(e.bytes), human_bytes(e.bytes));
  number(kAgain, e.again_us(), e.runs.size() > 1 ? human_us(e.again_us()) : "");
  number(kOnce, e.us, e.runs.empty() ? "" : human_us(e.us));
  text(kRule, e.rule);
  row->setToolTip(kRule, tooltip_of(e.rule));
  row->setToolTip(kValue, tooltip_of("%" + e.name + ": " + e.type));
  row->setData(kValue, Qt::UserRole + 1, e.copies.front());
  return row;
}

std::string escaped(const std::string& text) { return QString::fromStdString(text).toHtmlEscaped().toStdString(); }
std::string line(const std::string& key, const std::string& text) {
  return "<tr><td style='padding-right:12px'><i>" + key + "</i></td><td>" + escaped(text) + "</td></tr>";
}

// Where the copies of a value are made, and who reads them.
std::string chain_text(const Plan& plan, const ValueEntry& e) {
  if (e.readers.empty()) return "nobody reads it";
  std::string text = fmt::format("{} reader{}, the last {}", e.readers.size(), e.readers.size() == 1 ? "" : "s",
                                 node_title(plan.graph, e.last_reader()));
  return text;
}

const Wish* wish_of(const std::vector<Wish>& wishes, const std::string& name) {
  for (const Wish& wish : wishes)
    if (wish.pattern == name) return &wish;
  return nullptr;
}

}  // namespace

RecomputePanel::RecomputePanel(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  card_ = new QTextBrowser;
  card_->setOpenLinks(false);
  card_->setAccessibleName(QStringLiteral("the selected value"));
  card_->setMinimumHeight(40);
  note_ = new QLabel;
  note_->setTextFormat(Qt::PlainText);
  note_->setWordWrap(true);
  make_buttons();
  make_table();
  auto* buttons = new QHBoxLayout;
  for (QPushButton* button : {keep_, recompute_, may_}) buttons->addWidget(button);
  buttons->addStretch(1);
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(4, 4, 4, 4);
  all->addWidget(card_, 2);
  all->addLayout(buttons);
  all->addWidget(note_);
  all->addWidget(table_, 3);
  session_.attach(this);
  plan_changed();
}

RecomputePanel::~RecomputePanel() {
  task_.cancel();
  session_.detach(this);
}

void RecomputePanel::make_buttons() {
  const auto make = [&](const char* text, const char* help, std::optional<WishKind> kind) {
    auto* button = new QPushButton(QString::fromLatin1(text));
    button->setToolTip(QString::fromLatin1(help));
    button->setCheckable(true);
    connect(button, &QPushButton::clicked, this, guarded(this, [this, kind] { wish(kind); }));
    return button;
  };
  keep_ = make("Must keep", "Plan again so that this value is never computed again", WishKind::keep);
  recompute_ = make("Must recompute", "Plan again so that this value is not kept between its readers", WishKind::recompute);
  may_ = make("May", "Take the wish for this value back, and let the planner choose", std::nullopt);
}

void RecomputePanel::make_table() {
  table_ = new QTreeWidget;
  QStringList titles;
  for (const ColumnText& column : kTexts) titles << QString::fromLatin1(column.title);
  table_->setHeaderLabels(titles);
  table_->setRootIsDecorated(false);
  table_->setUniformRowHeights(true);
  table_->setAlternatingRowColors(true);
  table_->setTextElideMode(Qt::ElideMiddle);
  table_->setAccessibleName(QStringLiteral("values that cost most"));
  for (int i = 0; i < kColumns; ++i) {
    table_->setColumnWidth(i, kTexts[i].width);
    table_->headerItem()->setToolTip(i, QString::fromLatin1(kTexts[i].help));
  }
  table_->setMinimumHeight(40);
  table_->setSortingEnabled(true);
  table_->sortByColumn(kAgain, Qt::DescendingOrder);
  connect(table_, &QTreeWidget::currentItemChanged, this, guarded(this, [this](QTreeWidgetItem* item, QTreeWidgetItem*) {
            if (following_ || item == nullptr || !log_ || session_.shared_model() != log_->model) return;
            session_.select_value(item->data(kValue, Qt::UserRole + 1).toInt());
          }));
}

void RecomputePanel::closed() {
  task_.cancel();
  log_.reset();
  prices_ = {};
  worked_model_ = 0;
  worked_value_ = kNone;
  const bool outer = std::exchange(following_, true);
  table_->clear();
  following_ = outer;
  card_->clear();
}

void RecomputePanel::plan_changed() {
  work();
  fill_card();
}

void RecomputePanel::selection_changed() {
  work();
  fill_card();
  mark_row();
}

bool RecomputePanel::settled() const {
  if (session_.model() == nullptr || session_.solving() || !log_ || log_->model != session_.shared_model()) return false;
  const ValueEntry* entry = selected();
  return entry == nullptr || (prices_.name == entry->name && prices_.model == session_.model()->serial() &&
                              ((prices_.alone && prices_.anew) || !prices_.error.empty()));
}

const ValueEntry* RecomputePanel::selected() const {
  if (!log_ || session_.shared_model() != log_->model) return nullptr;
  return log_->find(session_.selection().value);
}

// The prices of a plan that is still being improved would be out of date at once, so only its log is made.
void RecomputePanel::work() {
  const Document* document = session_.document();
  if (session_.model() == nullptr || document == nullptr) return;
  const ValueId v = session_.selection().value;
  const bool is_final = !session_.solving();
  if (session_.model()->serial() == worked_model_ && v == worked_value_ && is_final == worked_final_) return;
  worked_model_ = session_.model()->serial();
  worked_value_ = v;
  worked_final_ = is_final;
  PlanOptions options = document->options;
  options.wishes = session_.wishes();
  task_.run([this, mail = mail_, known = log_, model = session_.shared_model(), captured = document->captured, options, v,
             is_final](const std::atomic<bool>& cancelled) mutable {
    const auto hand_over = [&](auto&& write) {
      if (cancelled) return;
      {
        std::lock_guard lock(mail->mutex);
        write(*mail);
      }
      QMetaObject::invokeMethod(this, guarded(this, [this] { arrived(); }), Qt::QueuedConnection);
    };
    options.cancel = &cancelled;
    std::shared_ptr<const PlanLog> log = known && known->model == model ? known : make_log(model, *captured, options);
    hand_over([&](Mail& m) { m.log = log; });
    const ValueEntry* entry = log->find(v);
    if (entry == nullptr || !is_final || cancelled) return;
    ValuePrices prices;
    prices.name = entry->name;
    prices.model = model->serial();
    try {
      prices.alone = price_alone(model->plan(), log->entries, *entry, options);
      hand_over([&](Mail& m) { m.prices = prices; });
      prices.anew = price_anew(*captured, model->plan(), *entry, options);
    } catch (const Cancelled&) {
      return;
    } catch (const std::exception& error) {
      prices.error = error.what();
    }
    hand_over([&](Mail& m) { m.prices = prices; });
  });
}

void RecomputePanel::arrived() {
  std::shared_ptr<const PlanLog> log;
  std::optional<ValuePrices> prices;
  {
    std::lock_guard lock(mail_->mutex);
    log = std::exchange(mail_->log, nullptr);
    prices = std::exchange(mail_->prices, std::nullopt);
  }
  if (prices) prices_ = std::move(*prices);
  if (log && log->model == session_.shared_model() && log != log_) {
    log_ = std::move(log);
    fill_table();
  }
  fill_card();
}

void RecomputePanel::fill_card() {
  const ValueEntry* e = selected();
  const bool can_wish = e != nullptr && e->choice != ValueChoice::elsewhere && !e->runs.empty();
  const Wish* wished = e == nullptr ? nullptr : wish_of(session_.wishes(), e->name);
  for (QPushButton* button : {keep_, recompute_, may_}) button->setEnabled(can_wish || wished != nullptr);
  keep_->setChecked(wished != nullptr && wished->kind == WishKind::keep);
  recompute_->setChecked(wished != nullptr && wished->kind == WishKind::recompute);
  may_->setChecked(wished == nullptr && can_wish);
  if (e == nullptr) {
    const bool none = session_.model() == nullptr || session_.selection().value == kNone;
    card_->setHtml(none ? QStringLiteral("<p>Select a value, here or in any picture, to see what it costs.</p>")
                        : QStringLiteral("<p>…</p>"));
    return;
  }
  const Plan& plan = session_.model()->plan();
  std::string html = "<h3>%" + escaped(e->name) + "</h3><table cellspacing=0 cellpadding=2>";
  html += line("choice", value_choice_name(e->choice)) + line("made", runs_text(*e)) + line("read", chain_text(plan, *e));
  html += line("bytes", exact_bytes(e->bytes)) + line("one run", human_us(e->us));
  if (e->runs.size() > 1) html += line("made again", human_us(e->again_us()));
  html += line("why", e->rule);
  const bool is_its = prices_.name == e->name && prices_.model == session_.model()->serial();
  const std::string other = e->choice == ValueChoice::recomputed ? "kept instead" : "made again instead";
  const auto price = [&](const std::optional<ValuePrice>& p) {
    if (is_its && p) return price_text(plan, *p);
    return is_its && !prices_.error.empty() ? prices_.error : std::string(session_.solving() ? "when the plan is final" : "…");
  };
  if (can_wish) {
    html += line(other + ", all else fixed", price(prices_.alone));
    html += line(other + ", planned anew", price(prices_.anew));
  }
  card_->setHtml(QString::fromStdString(html + "</table>"));
}

void RecomputePanel::fill_table() {
  const bool outer = std::exchange(following_, true);
  std::vector<const ValueEntry*> shown;
  for (const ValueEntry& e : log_->entries)
    if (e.choice != ValueChoice::elsewhere && !e.runs.empty() && e.result == 0) shown.push_back(&e);
  const std::size_t all = shown.size();
  std::stable_sort(shown.begin(), shown.end(), [](const ValueEntry* a, const ValueEntry* b) {
    return a->again_us() != b->again_us() ? a->again_us() > b->again_us() : a->bytes > b->bytes;
  });
  if (shown.size() > kMostRows) shown.resize(kMostRows);
  QList<QTreeWidgetItem*> rows;
  for (const ValueEntry* e : shown) rows << make_row(*e);
  table_->setSortingEnabled(false);
  table_->clear();
  table_->addTopLevelItems(rows);
  table_->setSortingEnabled(true);
  std::string text;
  for (const Wish& wish : session_.wishes()) text += (text.empty() ? "Wishes: " : ", ") + wish_text(wish);
  if (all > kMostRows)
    text += (text.empty() ? "" : ". ") + fmt::format("The {} of {} values that cost most are listed.", grouped(kMostRows),
                                                     grouped(static_cast<std::int64_t>(all)));
  note_->setText(QString::fromStdString(text));
  note_->setVisible(!text.empty());
  following_ = outer;
  mark_row();
}

void RecomputePanel::mark_row() {
  const bool outer = std::exchange(following_, true);
  const ValueEntry* e = selected();
  QTreeWidgetItem* found = nullptr;
  for (int i = 0; e != nullptr && i < table_->topLevelItemCount() && found == nullptr; ++i)
    if (table_->topLevelItem(i)->data(kValue, Qt::UserRole + 1).toInt() == e->copies.front()) found = table_->topLevelItem(i);
  if (found == nullptr) table_->clearSelection();
  table_->setCurrentItem(found);
  following_ = outer;
}

void RecomputePanel::wish(std::optional<WishKind> kind) {
  const ValueEntry* e = selected();
  if (e != nullptr)
    session_.ask_wishes(kind ? with_wish(session_.wishes(), {*kind, e->name}) : without_wish(session_.wishes(), e->name));
  fill_card();
}

}  // namespace tapedeck::viewer
