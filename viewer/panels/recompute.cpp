// The panel of recomputation. A change of the plan or of the selection goes this way:
//
//   refresh() --> thread: price_alone, searched_price --> mail --> arrived() --> card
//                                                          |
//                                                          +--> take_search(): the wish is made, and its plan is known
#include <tapedeck/viewer/panels/recompute.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/model/wish_history.h>
#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/plan/plan_unit.h>
#include <tapedeck/viewer/plan/release_later.h>
#include <tapedeck/viewer/plan/tables.h>
#include <tapedeck/viewer/planning/default_source.h>
#include <tapedeck/viewer/words/format.h>

#include <tapedeck/capture/plan/wished_values.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>
#include <QtCore/QTimer>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QVBoxLayout>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::viewer {

namespace {

std::string line(const std::string& key, const std::string& text) {
  return "<tr><td style='padding-right:12px; color:" + html_colour(colours::kFaint) + "'>" + key + "</td><td>" +
         escaped_html(text) + "</td></tr>";
}

// Where the copies of a value are made, and who reads them.
std::string chain_text(const Plan& plan, const ValueEntry& e) {
  if (e.readers.empty()) return "nobody reads it";
  std::string text = fmt::format("{} reader{}, the last {}", e.readers.size(), e.readers.size() == 1 ? "" : "s",
                                 node_title(plan.graph, e.last_reader()));
  return text;
}

// As price_anew, and under a budget the search is kept, because a person may make the wish next. Without a budget there is less
// to choose, so make_plan takes far less time than a search for all budgets.
ValuePrice searched_price(const PlanProblem& asked, const Plan& plan, const ValueEntry& entry,
                          const std::atomic<bool>* cancelled, PreparedSearch* search) {
  if (plan.budget_bytes < 0) {
    PlanOptions options = asked.options;
    options.cancel = cancelled;
    return price_anew(*asked.graph, plan, entry, options);
  }
  ValuePrice price = other_wish(entry);
  if (!price.obstacle.empty()) return price;
  PlanProblem problem = asked;
  problem.options.wishes = with_wish(problem.options.wishes, price.wish);
  search->problem = std::make_shared<const PlanProblem>(std::move(problem));
  search->source = default_source()(*search->problem, {SearchEffort::full, search->cancel.get(), {}});
  search->budget = plan.budget_bytes;
  search->plan = search->source->plan(search->budget);
  take_numbers(*search->plan, &price);
  return price;
}

// A search of a large graph takes long to destroy.
void drop(std::unique_ptr<PreparedSearch> search) {
  if (search) release_later(std::shared_ptr<const void>(std::move(search)));
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
  setMinimumHeight(90);  // as a table
  session_.attach(this);
  refresh();
}

RecomputePanel::~RecomputePanel() {
  stop_asking();
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

// The table of values, sorted by the time of further runs. The panel of values shows it in the order of the step.
void RecomputePanel::make_table() {
  table_ = new TablePanel(TableId::values, session_);
  const auto& columns = layout_of(TableId::values).columns;
  const std::vector<std::string> shown = {"name", "choice", "runs", "bytes", "again", "us", "rule"};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool hidden = std::find(shown.begin(), shown.end(), columns[i].key) == shown.end();
    table_->table()->setColumnHidden(static_cast<int>(i), hidden);
    if (columns[i].key != std::string("again")) continue;
    table_->table()->sortByColumn(static_cast<int>(i), Qt::DescendingOrder);
    table_->table()->header()->moveSection(table_->table()->header()->visualIndex(static_cast<int>(i)), 1);
  }
}

void RecomputePanel::closed() {
  stop_asking();
  prices_ = {};
  drop(std::move(search_));
  card_->clear();
}

// In a dock behind others the panel counts as visible, but no part of it is seen.
bool RecomputePanel::is_seen() const { return finishing_ || (isVisible() && !visibleRegion().isEmpty()); }

void RecomputePanel::refresh() {
  stale_ = !is_seen();
  ask_for_prices();
  show_buttons();
  if (!stale_) fill_card();
}

void RecomputePanel::paintEvent(QPaintEvent* event) {
  QWidget::paintEvent(event);
  if (stale_) QTimer::singleShot(0, this, guarded(this, [this] { refresh(); }));
}

void RecomputePanel::finish() {
  table_->finish();
  finishing_ = true;
  refresh();
  task_.wait();
  arrived();
  finishing_ = false;
}

bool RecomputePanel::settled() const {
  if (session_.model() == nullptr || session_.solving()) return false;
  return selected() == nullptr || has_prices();
}

// Both prices of the selected value.
bool RecomputePanel::has_prices() const {
  return prices_.name == selected()->name && prices_.model == session_.model()->serial() &&
         ((prices_.alone && prices_.anew) || !prices_.error.empty());
}

const ValueEntry* RecomputePanel::selected() const {
  const ValueId v = session_.selection().value;
  return session_.model() == nullptr || v == kNone ? nullptr : &session_.model()->values().entry(v);
}

void RecomputePanel::stop_asking() {
  task_.cancel();
  if (cancel_search_) *cancel_search_ = true;
  asked_model_ = 0;
  asked_value_ = kNone;
}

// The prices of a plan that is still being improved would be out of date at once.
void RecomputePanel::ask_for_prices() {
  const Document* document = session_.document();
  if (document == nullptr || selected() == nullptr || session_.solving() || !is_seen()) return stop_asking();
  const ValueId v = session_.selection().value;
  if ((session_.model()->serial() == asked_model_ && v == asked_value_) || has_prices()) return;
  stop_asking();
  drop(std::move(search_));
  asked_model_ = session_.model()->serial();
  asked_value_ = v;
  PlanProblem problem{document->captured, document->options};
  problem.options.wishes = session_.wishes();
  auto search = std::make_shared<std::unique_ptr<PreparedSearch>>(std::make_unique<PreparedSearch>());  // handed on at the end
  cancel_search_ = (*search)->cancel;
  task_.run([this, mail = mail_, model = session_.shared_model(), problem, search, v](const std::atomic<bool>& cancelled) {
    const auto hand_over = [&](const ValuePrices& prices) {
      std::lock_guard lock(mail->mutex);
      if (cancelled) return;
      mail->prices = prices;
      if (prices.anew) mail->search = std::move(*search);
      QMetaObject::invokeMethod(this, guarded(this, [this] { arrived(); }), Qt::QueuedConnection);
    };
    PlanOptions options = problem.options;
    options.cancel = &cancelled;
    const ValueEntry& entry = model->values().entry(v);
    ValuePrices prices;
    prices.name = entry.name;
    prices.model = model->serial();
    try {
      prices.alone = price_alone(model->plan(), model->values().log(), entry, options);
      hand_over(prices);
      prices.anew = searched_price(problem, model->plan(), entry, &cancelled, search->get());
    } catch (const Cancelled&) {
      return;
    } catch (const std::exception& error) {
      prices.error = error.what();
    }
    hand_over(prices);
  });
}

std::unique_ptr<PreparedSearch> RecomputePanel::take_search(const std::vector<Wish>& wishes) {
  if (!search_ || !search_->source || session_.document() == nullptr) return nullptr;
  const PlanProblem& problem = *search_->problem;
  if (problem.graph != session_.document()->captured || problem.options.wishes != wishes) return nullptr;
  cancel_search_.reset();  // the search is no longer this panel's to cancel
  return std::move(search_);
}

void RecomputePanel::arrived() {
  {
    std::lock_guard lock(mail_->mutex);
    if (std::optional<ValuePrices> prices = std::exchange(mail_->prices, std::nullopt)) prices_ = std::move(*prices);
    if (mail_->search) search_ = std::move(mail_->search);
  }
  fill_card();
}

bool RecomputePanel::can_wish() const {
  const ValueEntry* e = selected();
  return e != nullptr && e->choice != ValueChoice::elsewhere && !e->runs.empty();
}

void RecomputePanel::show_buttons() {
  const ValueEntry* e = selected();
  std::string wishes;
  for (const Wish& wish : session_.wishes()) wishes += (wishes.empty() ? "Wishes: " : ", ") + wish_text(wish);
  note_->setText(QString::fromStdString(wishes));
  note_->setVisible(!wishes.empty());
  const Wish* wished = e == nullptr ? nullptr : wish_of(session_.wishes(), e->name);
  for (QPushButton* button : {keep_, recompute_, may_}) button->setEnabled(can_wish() || wished != nullptr);
  keep_->setChecked(wished != nullptr && wished->kind == WishKind::keep);
  recompute_->setChecked(wished != nullptr && wished->kind == WishKind::recompute);
  may_->setChecked(wished == nullptr && can_wish());
}

void RecomputePanel::fill_card() {
  const ValueEntry* e = selected();
  if (e == nullptr)
    return card_->setHtml(QStringLiteral("<p>Select a value, here or in any picture, to see what it costs.</p>"));
  const Plan& plan = session_.model()->plan();
  std::string html = "<h3>%" + escaped_html(e->name) + "</h3><table cellspacing=0 cellpadding=2>";
  html += line("choice", value_choice_name(e->choice)) + line("made", runs_text(*e)) + line("read", chain_text(plan, *e));
  html += line("bytes", unit_of(plan).exact_text(e->bytes)) + line("one run", human_us(e->us));
  if (e->runs.size() > 1) html += line("made again", human_us(e->again_us()));
  html += line("why", in_unit(e->rule, unit_of(plan)));
  const bool is_its = prices_.name == e->name && prices_.model == session_.model()->serial();
  const std::string other = e->choice == ValueChoice::recomputed ? "kept instead" : "made again instead";
  const auto price = [&](const std::optional<ValuePrice>& p) {
    if (is_its && p) return price_text(plan, *p);
    return is_its && !prices_.error.empty() ? prices_.error : std::string(session_.solving() ? "when the plan is final" : "…");
  };
  if (can_wish()) {
    html += line(other + ", all else fixed", price(prices_.alone));
    html += line(other + ", planned anew", price(prices_.anew));
  }
  card_->setHtml(QString::fromStdString(html + "</table>"));
}

void RecomputePanel::wish(std::optional<WishKind> kind) {
  const ValueEntry* e = selected();
  if (e != nullptr)
    session_.ask_wishes(kind ? with_wish(session_.wishes(), {*kind, e->name}) : without_wish(session_.wishes(), e->name));
  show_buttons();
}

}  // namespace tapedeck::viewer
