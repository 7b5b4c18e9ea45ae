// Asks for what an ONNX model does not say: the sizes that it leaves open, and the loss of a step of training.
#pragma once

#include <tapedeck/capture/onnx/import_onnx.h>

#include <QtWidgets/QDialog>

#include <map>
#include <string>

class QCheckBox;
class QComboBox;
class QLabel;
class QSpinBox;

namespace tapedeck::viewer {

// It deletes itself when it is closed.
class OnnxDialog : public QDialog {
 public:
  OnnxDialog(const std::string& path, const OnnxFacts& facts, QWidget* parent);

  OnnxOptions options() const;
  std::string tool_line() const;  // of the tool, which does the same

  QSpinBox& size(const std::string& name) { return *sizes_.at(name); }  // REQUIRES an open size of the model
  QCheckBox& trains() { return *trains_; }
  QComboBox& loss() { return *loss_; }

 private:
  void show_line();

  std::string path_;
  std::map<std::string, QSpinBox*> sizes_;
  QCheckBox *trains_ = nullptr, *abstract_ = nullptr;
  QComboBox *loss_ = nullptr, *optimizer_ = nullptr;
  QLabel* line_ = nullptr;
};

}  // namespace tapedeck::viewer
