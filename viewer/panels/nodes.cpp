// The table of nodes: one row per node that passes the filter. A click on a row selects the node in the session; a selection
// elsewhere scrolls the table to its row.
#include <tapedeck/viewer/panels/nodes.h>

#include <tapedeck/viewer/messages.h>
#include <tapedeck/viewer/model/explain.h>
#include <tapedeck/viewer/model/format.h>

#include <QtCore/QAbstractTableModel>
#include <QtCore/QItemSelectionModel>
#include <QtGui/QColor>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QTreeView>
#include <QtWidgets/QVBoxLayout>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace tapedeck::viewer {

namespace {

constexpr const char* kColumns[] = {"#", "op", "value", "type", "bytes", "role", "phase", "live"};
constexpr int kWidths[] = {44, 112, 84, 112, 72, 100, 70, 72};
enum Column { kNumber, kOp, kValue, kType, kBytes, kRole, kPhase, kLive, kColumnCount };

QString text_of(const PlanModel& model, NodeId n, int column) {
  const Graph& graph = model.graph();
  const Node& node = graph.nodes[n];
  const ValueId first = node.first_output;
  const bool has_value = node.n_outputs > 0;
  const Type* type = has_value ? &graph.values[first].type : nullptr;
  std::string text;
  switch (column) {
    case kNumber:
      text = std::to_string(n);
      break;
    case kOp:
      text = node.op->name;
      break;
    case kValue:
      if (has_value) text = "%" + graph.value_name(first);
      if (node.n_outputs > 1) text += " +" + std::to_string(node.n_outputs - 1);
      break;
    case kType:
      text = type != nullptr ? to_string(*type) : "";
      break;
    case kBytes:
      text = type != nullptr ? human_bytes(type->bytes()) : "";
      break;
    case kRole:
      text = has_value ? role_class_name(role_of(model.plan(), first)) : "";
      break;
    case kPhase:
      text = phase_name(node.origin.phase);
      break;
    case kLive:
      text = human_bytes(model.curve()[n]);
      break;
    default:
      break;
  }
  return QString::fromStdString(text);
}

int alignment(int column) {
  const bool number = column == kNumber || column == kBytes || column == kLive;
  return static_cast<int>((number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
}

}  // namespace

// The rows that pass the filter. The model itself filters, because a proxy model of Qt would be many times slower.
class NodesPanel::Rows : public QAbstractTableModel {
 public:
  using QAbstractTableModel::QAbstractTableModel;

  void fill(const PlanModel* model, const NodeFilter& filter) {
    beginResetModel();
    model_ = model;
    nodes.clear();
    for (NodeId n = 0; model != nullptr && n < model->nodes(); ++n)
      if (filter.empty() || filter.accepts(model->plan(), n)) nodes.push_back(n);
    endResetModel();
  }
  int rowCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : static_cast<int>(nodes.size()); }
  int columnCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : kColumnCount; }
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override {
    if (orientation != Qt::Horizontal || section >= kColumnCount) return {};
    if (role == Qt::DisplayRole) return QString::fromLatin1(kColumns[section]);
    return role == Qt::TextAlignmentRole ? QVariant(alignment(section)) : QVariant();
  }
  QVariant data(const QModelIndex& index, int role) const override {
    if (model_ == nullptr || !index.isValid() || index.row() >= rowCount()) return {};
    const NodeId n = nodes[index.row()];
    const Node& node = model_->graph().nodes[n];
    if (role == Qt::DisplayRole) return text_of(*model_, n, index.column());
    if (role == Qt::TextAlignmentRole) return alignment(index.column());
    if (role == Qt::DecorationRole && index.column() == kRole && node.n_outputs > 0) {
      const Colour c = role_class_colour(role_of(model_->plan(), node.first_output));
      return QColor(c.r, c.g, c.b);
    }
    if (role == Qt::ForegroundRole && index.column() == kLive && n == model_->peak_node())
      return QColor(colours::kProblem.r, colours::kProblem.g, colours::kProblem.b);
    if (role == Qt::ToolTipRole) return tooltip_of(model_->graph().node_text(n));
    return {};
  }

  std::vector<NodeId> nodes;

 private:
  const PlanModel* model_ = nullptr;
};

NodesPanel::NodesPanel(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      rows_(new Rows(this)),
      filter_(new QLineEdit),
      count_(new QLabel),
      table_(new QTreeView) {
  filter_->setPlaceholderText(QStringLiteral("Filter: conv  op:matmul  bytes>1MiB  role:saved  is:clone  -phase:backward"));
  filter_->setClearButtonEnabled(true);
  filter_->setAccessibleName(QStringLiteral("node filter"));
  count_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  table_->setModel(rows_);
  table_->setRootIsDecorated(false);
  table_->setUniformRowHeights(true);
  table_->setAlternatingRowColors(true);
  table_->setAllColumnsShowFocus(true);
  table_->setIconSize(QSize(10, 10));
  table_->header()->setStretchLastSection(true);
  table_->header()->setMinimumSectionSize(30);
  for (int i = 0; i < kColumnCount; ++i) table_->setColumnWidth(i, kWidths[i]);
  auto* top = new QHBoxLayout;
  top->addWidget(filter_, 1);
  top->addWidget(count_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(6, 6, 6, 6);
  layout->addLayout(top);
  layout->addWidget(table_);
  connect(filter_, &QLineEdit::textChanged, this, guarded(this, [this] { refill(); }));
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          guarded(this, [this](const QModelIndex& now, const QModelIndex&) {
            if (!following_ && now.isValid()) session_.select_node(node_at(now.row()));
          }));
  connect(table_, &QTreeView::activated, this, guarded(this, [this] { session_.fit_selection(); }));
  session_.attach(this);
  refill();
}

NodesPanel::~NodesPanel() { session_.detach(this); }

NodeId NodesPanel::node_at(int row) const { return row >= 0 && row < rows_->rowCount() ? rows_->nodes[row] : kNone; }

int NodesPanel::row_of(NodeId n) const {
  const auto found = std::lower_bound(rows_->nodes.begin(), rows_->nodes.end(), n);
  return found == rows_->nodes.end() || *found != n ? -1 : static_cast<int>(found - rows_->nodes.begin());
}

void NodesPanel::refill() {
  const PlanModel* model = session_.model();
  shown_ = model != nullptr ? model->serial() : 0;
  const bool outer = std::exchange(following_, true);
  rows_->fill(model, NodeFilter(filter_->text().toStdString()));
  following_ = outer;
  const int all = model != nullptr ? model->nodes() : 0;
  count_->setText(QString::fromStdString(rows_->rowCount() == all ? grouped(all) + " nodes"
                                                                  : grouped(rows_->rowCount()) + " of " + grouped(all)));
  selection_changed();
}

void NodesPanel::closed() {
  shown_ = 0;
  rows_->fill(nullptr, NodeFilter(""));
}

void NodesPanel::plan_changed() {
  if (session_.model() == nullptr || session_.model()->serial() != shown_) refill();
}

void NodesPanel::selection_changed() {
  const int row = row_of(session_.selection().node);
  const QModelIndex index = row < 0 || session_.selection().node == kNone ? QModelIndex() : rows_->index(row, 0);
  if (table_->currentIndex().row() == row && index.isValid()) return;
  const bool outer = std::exchange(following_, true);
  if (index.isValid()) {
    table_->selectionModel()->setCurrentIndex(index, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
    table_->scrollTo(index);
  } else {
    table_->selectionModel()->clear();
  }
  following_ = outer;
}

}  // namespace tapedeck::viewer
