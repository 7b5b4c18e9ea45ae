#include <tapedeck/viewer/tables/document_csv.h>

#include <tapedeck/viewer/words/format.h>

#include <QtGui/QTextBlock>
#include <QtGui/QTextDocument>
#include <QtGui/QTextTable>

namespace tapedeck::viewer {

namespace {

// The text of a block without its buttons and its squares of a colour. Spaces that do not break are spaces.
QString text_of_block(const QTextBlock& block) {
  QString text;
  for (auto at = block.begin(); !at.atEnd(); ++at)
    if (!at.fragment().charFormat().anchorHref().startsWith(QStringLiteral("region:"))) text += at.fragment().text();
  return text.remove(QChar(0x25a0)).replace(QChar::Nbsp, QLatin1Char(' '));
}

QString text_of_cell(const QTextTableCell& cell) {
  QStringList lines;
  for (auto at = cell.begin(); !at.atEnd(); ++at)
    for (const QString& line : text_of_block(at.currentBlock()).split(QChar::LineSeparator)) lines << line.trimmed();
  return lines.join(QStringLiteral("; "));
}

class FactsWriter {
 public:
  void add(const QTextBlock& block) {
    if (block.blockFormat().headingLevel() > 0)
      section_ = text_of_block(block).trimmed();
    else
      for (const QString& line : text_of_block(block).split(QChar::LineSeparator)) write({}, line.trimmed());
  }
  void add(const QTextTable& table) {
    for (int row = 0; row < table.rows(); ++row) {
      QStringList texts;
      for (int column = 1; column < table.columns(); ++column) texts << text_of_cell(table.cellAt(row, column));
      write(text_of_cell(table.cellAt(row, 0)), texts.join(QStringLiteral("; ")));
    }
  }
  const std::string& csv() const { return csv_; }

 private:
  void write(const QString& fact, const QString& text) {
    if (fact.isEmpty() && text.isEmpty()) return;
    csv_ += fact_csv(section_.toStdString(), fact.toStdString(), text.toStdString());
  }

  QString section_;
  std::string csv_ = kFactsHeader;
};

}  // namespace

std::string fact_csv(const std::string& section, const std::string& fact, const std::string& text, const std::string& bytes) {
  return csv_field(section) + "," + csv_field(fact) + "," + csv_field(text) + "," + bytes + "\n";
}

std::string document_csv(const QTextDocument& document) {
  FactsWriter facts;
  for (auto at = document.rootFrame()->begin(); !at.atEnd(); ++at) {
    if (const auto* table = qobject_cast<const QTextTable*>(at.currentFrame()))
      facts.add(*table);
    else if (at.currentBlock().isValid())
      facts.add(at.currentBlock());
  }
  return facts.csv();
}

}  // namespace tapedeck::viewer
