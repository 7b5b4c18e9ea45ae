// The table of decisions: number, value, bytes, span, cost and reason. A click on a row selects the value, and a selection
// marks its row.
#include <tapedeck/viewer/panels/decisions.h>

#include <tapedeck/viewer/messages.h>
#include <tapedeck/viewer/model/explain.h>
#include <tapedeck/viewer/model/format.h>

#include <QtWidgets/QHeaderView>

#include <string>
#include <utility>

namespace tapedeck::viewer {

namespace {

enum Column { kNumber, kValue, kBytes, kSpan, kCost, kClones, kLivePeak, kReason };
constexpr int kWidths[] = {36, 100, 76, 54, 76, 56, 80, 400};

// The value of the planned graph with this name; kNone if the graph has none.
ValueId find_value(const Graph& graph, const std::string& name) {
  for (ValueId v = 0; v < graph.value_count(); ++v)
    if (graph.value_name(v) == name) return v;
  return kNone;
}

QTreeWidgetItem* make_item(const Decision& decision, int number) {
  auto* item = new QTreeWidgetItem;
  const auto set = [&](Column column, const std::string& text, bool right = true) {
    item->setText(column, QString::fromStdString(text));
    item->setTextAlignment(column, (right ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  };
  set(kNumber, std::to_string(number));
  set(kValue, "%" + decision.value, false);
  set(kBytes, human_bytes(decision.bytes));
  set(kSpan, grouped(decision.span));
  set(kCost, human_us(decision.cost_us));
  set(kClones, grouped(decision.clones));
  set(kLivePeak, human_bytes(decision.live_peak_bytes));
  set(kReason, decision.reason, false);
  item->setToolTip(kReason, tooltip_of(decision.reason));
  item->setData(kValue, Qt::UserRole, QString::fromStdString(decision.value));
  return item;
}

}  // namespace

DecisionsPanel::DecisionsPanel(Session& session, QWidget* parent) : QTreeWidget(parent), session_(session) {
  setHeaderLabels({QStringLiteral("#"), QStringLiteral("value"), QStringLiteral("bytes"), QStringLiteral("span"),
                   QStringLiteral("cost"), QStringLiteral("clones"), QStringLiteral("most live"), QStringLiteral("reason")});
  setRootIsDecorated(false);
  setUniformRowHeights(true);
  setAlternatingRowColors(true);
  header()->setMinimumSectionSize(30);
  for (int i = 0; i <= kReason; ++i) setColumnWidth(i, kWidths[i]);
  connect(this, &QTreeWidget::currentItemChanged, this, guarded(this, [this](QTreeWidgetItem* item, QTreeWidgetItem*) {
            if (following_ || item == nullptr || session_.model() == nullptr) return;
            const ValueId v = find_value(session_.model()->graph(), item->data(kValue, Qt::UserRole).toString().toStdString());
            if (v != kNone) session_.select_value(v);
          }));
  session_.attach(this);
  plan_changed();
}

DecisionsPanel::~DecisionsPanel() { session_.detach(this); }

void DecisionsPanel::closed() {
  shown_ = 0;
  clear();
}

void DecisionsPanel::plan_changed() {
  const PlanModel* model = session_.model();
  if (model == nullptr || model->serial() == shown_) return;
  shown_ = model->serial();
  const bool outer = std::exchange(following_, true);
  clear();
  int number = 0;
  for (const Decision& decision : model->plan().decisions) addTopLevelItem(make_item(decision, ++number));
  if (number == 0) {
    auto* none = new QTreeWidgetItem;
    none->setText(kNumber, QStringLiteral("Nothing is recomputed: every value is kept until its last reader."));
    none->setFlags(Qt::ItemIsEnabled);
    addTopLevelItem(none);
    none->setFirstColumnSpanned(true);
  }
  following_ = outer;
}

void DecisionsPanel::selection_changed() {
  const PlanModel* model = session_.model();
  if (model == nullptr) return;
  const bool outer = std::exchange(following_, true);
  QTreeWidgetItem* found = nullptr;
  if (session_.selection().value != kNone) {
    const QString name = QString::fromStdString(model->graph().value_name(session_.selection().value));
    for (int i = 0; i < topLevelItemCount() && found == nullptr; ++i)
      if (topLevelItem(i)->data(kValue, Qt::UserRole).toString() == name) found = topLevelItem(i);
  }
  if (found == nullptr) clearSelection();
  setCurrentItem(found);
  following_ = outer;
}

}  // namespace tapedeck::viewer
