#include <tapedeck/viewer/theme.h>

#include <tapedeck/viewer/model/colours.h>

#include <QtGui/QFontDatabase>
#include <QtGui/QPalette>
#include <QtWidgets/QApplication>
#include <QtWidgets/QStyleFactory>

namespace tapedeck::viewer {

namespace {

QColor qt(Colour c) { return QColor(c.r, c.g, c.b, c.a); }

}  // namespace

void apply_theme(QApplication& app) {
  app.setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
  QPalette p;
  p.setColor(QPalette::Window, qt(colours::kWindow));
  p.setColor(QPalette::WindowText, qt(colours::kText));
  p.setColor(QPalette::Base, qt(colours::kCanvas));
  p.setColor(QPalette::AlternateBase, QColor(23, 26, 32));
  p.setColor(QPalette::Text, qt(colours::kText));
  p.setColor(QPalette::PlaceholderText, QColor(110, 118, 132));
  p.setColor(QPalette::Button, qt(colours::kButton));
  p.setColor(QPalette::ButtonText, qt(colours::kText));
  p.setColor(QPalette::ToolTipBase, qt(colours::kPanel));
  p.setColor(QPalette::ToolTipText, qt(colours::kText));
  p.setColor(QPalette::Highlight, QColor(45, 92, 138));
  p.setColor(QPalette::HighlightedText, QColor(255, 255, 255));
  p.setColor(QPalette::Link, QColor(125, 184, 234));
  for (QPalette::ColorRole role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    p.setColor(QPalette::Disabled, role, QColor(104, 110, 122));
  app.setPalette(p);
  QFont font = app.font();
  if (QFontDatabase::hasFamily(QStringLiteral("DejaVu Sans"))) font.setFamily(QStringLiteral("DejaVu Sans"));
  font.setPixelSize(12);
  app.setFont(font);
  app.setStyleSheet(
      QStringLiteral("QToolTip { color: #e2e6ed; background: #1f232b; border: 1px solid #464d5a; }"
                     "QHeaderView::section { background: #1f232b; color: #929baa; border: 0; border-right: 1px solid #2a2f3a; "
                     "padding: 3px 6px; }"
                     "QTreeView, QTextBrowser, QTreeWidget { border: 1px solid #2a2f3a; }"
                     "QDockWidget::title { background: #1f232b; padding: 4px 8px; }"
                     "QStatusBar::item { border: 0; }"
                     "QMainWindow::separator { background: #12151a; width: 4px; height: 4px; }"));
}

}  // namespace tapedeck::viewer
