#include <tapedeck/viewer/start/onnx_dialog.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/model/tool_command.h>

#include <QtWidgets/QCheckBox>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QFormLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QSpinBox>

namespace tapedeck::viewer {

namespace {

constexpr int kLetters = 60;   // in a line
constexpr int kUsualSize = 8;  // of what the model leaves open

}  // namespace

OnnxDialog::OnnxDialog(const std::string& path, const OnnxFacts& facts, QWidget* parent) : QDialog(parent), path_(path) {
  setObjectName(QStringLiteral("onnx"));
  setWindowTitle(QStringLiteral("Import a model"));
  setAttribute(Qt::WA_DeleteOnClose);
  setMinimumWidth(kLetters * fontMetrics().averageCharWidth());
  auto* form = new QFormLayout(this);
  for (const std::string& name : facts.open_sizes) {
    auto* field = new QSpinBox;
    field->setRange(1, 1 << 20);
    field->setValue(kUsualSize);
    field->setToolTip(tooltip_of("The model leaves this size open."));
    sizes_[name] = field;
    auto* label = new QLabel(QString::fromStdString(name));
    label->setTextFormat(Qt::PlainText);
    form->addRow(label, field);
    connect(field, &QSpinBox::valueChanged, this, guarded(this, [this] { show_line(); }));
  }
  trains_ = new QCheckBox(QStringLiteral("Make a step of training"));
  trains_->setToolTip(tooltip_of("Forward, loss, backward and optimizer. Without it: the model as it is."));
  trains_->setChecked(true);
  form->addRow(trains_);
  loss_ = new QComboBox;
  loss_->addItems({QStringLiteral("cross_entropy"), QStringLiteral("mse"), QStringLiteral("bce")});
  for (const std::string& output : facts.outputs) loss_->addItem(QString::fromStdString(output));
  loss_->setToolTip(tooltip_of("The loss of the first output and a target; or an output that is the loss."));
  form->addRow(QStringLiteral("Loss"), loss_);
  optimizer_ = new QComboBox;
  optimizer_->addItems({QStringLiteral("sgd"), QStringLiteral("adamw")});
  form->addRow(QStringLiteral("Optimizer"), optimizer_);
  abstract_ = new QCheckBox(QStringLiteral("Types only"));
  abstract_->setToolTip(tooltip_of("The weights are left out: every plan can be explored, and nothing can be replayed."));
  form->addRow(abstract_);
  line_ = new QLabel;
  line_->setTextFormat(Qt::PlainText);
  line_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  line_->setWordWrap(true);
  line_->setToolTip(QStringLiteral("The line of the tool that does the same"));
  form->addRow(line_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel);
  buttons->button(QDialogButtonBox::Ok)->setText(QStringLiteral("Import and open"));
  form->addRow(buttons);
  connect(buttons, &QDialogButtonBox::accepted, this, guarded(this, [this] { accept(); }));
  connect(buttons, &QDialogButtonBox::rejected, this, guarded(this, [this] { reject(); }));
  for (QCheckBox* box : {trains_, abstract_}) connect(box, &QCheckBox::toggled, this, guarded(this, [this] { show_line(); }));
  for (QComboBox* box : {loss_, optimizer_})
    connect(box, &QComboBox::currentIndexChanged, this, guarded(this, [this] { show_line(); }));
  show_line();
}

OnnxOptions OnnxDialog::options() const {
  OnnxOptions options;
  for (const auto& [name, field] : sizes_) options.dims[name] = field->value();
  options.train = trains_->isChecked();
  if (options.train) {
    options.loss = loss_->currentText().toStdString();
    options.optimizer = optimizer_->currentText().toStdString();
  }
  options.abstract = abstract_->isChecked();
  return options;
}

std::string OnnxDialog::tool_line() const {
  const OnnxOptions o = options();
  std::string line = "tapedeck import onnx " + shell_word(path_), dims;
  for (const auto& [name, size] : o.dims) dims += (dims.empty() ? "" : ",") + name + "=" + std::to_string(size);
  if (!dims.empty()) line += " --dims " + shell_word(dims);
  if (o.train) line += " --train --loss " + shell_word(o.loss);
  if (o.optimizer != "sgd") line += " --optimizer " + o.optimizer;
  if (o.abstract) line += " --abstract";
  return line;
}

void OnnxDialog::show_line() {
  loss_->setEnabled(trains_->isChecked());
  optimizer_->setEnabled(trains_->isChecked());
  line_->setText(QString::fromStdString(tool_line()));
}

}  // namespace tapedeck::viewer
