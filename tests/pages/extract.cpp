// Makes tests from the fenced blocks on the pages. It writes one C++ file of GoogleTest cases and one shell script.
//
//     extract OUT.cpp OUT.sh DEPFILE ROOT PAGE...       ROOT is the folder that the paths of the pages begin from
//
//     ```cpp      a program with main() is run; other code becomes the body of a function, which is run too
//     ```graph    must parse
//     ```sh       the commands are run, all of `tapedeck` and `tapedeck-viewer`; the blocks of a page share one folder
//     ```         a drawing or output: not tested (also ```json)
//
// A comment before a block tells this program more about the block. Readers of the page do not see the comment:
//
//     <!-- preamble            lines that run before the block, for blocks that are a part of a program
//     ...
//     -->
//     <!-- quotes: FILE -->    the block must stand in this file of the tree, except for comments and spaces; only a whole
//                              program is run as well
//     <!-- not run: REASON -->
//
// Every fault is listed as PAGE:LINE, and then the build fails. Errors of the compiler name the line of the page too.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

struct Line {
  int number = 0;
  std::string text;
};
using Lines = std::vector<Line>;

struct Block {
  std::string page, language, quoted;
  bool skipped = false;
  Lines preamble, lines;
  int line = 0;  // the line of the opening fence
};

int faults = 0;

void fault(const std::string& page, int line, const std::string& text) {
  std::fprintf(stderr, "%s:%d: error: %s\n", page.c_str(), line, text.c_str());
  ++faults;
}

bool starts(const std::string& text, const std::string& with) { return text.rfind(with, 0) == 0; }

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == text.npos ? "" : text.substr(first, last - first + 1);
}

// The text between `before` at the start and `after` at the end; empty if one of them is missing.
std::string between(const std::string& text, const std::string& before, const std::string& after) {
  if (!starts(text, before) || text.size() < before.size() + after.size()) return "";
  if (text.compare(text.size() - after.size(), after.size(), after) != 0) return "";
  return trimmed(text.substr(before.size(), text.size() - before.size() - after.size()));
}

bool is_command(const std::string& line) {
  for (const char* program : {"tapedeck ", "tapedeck-viewer ", "build/bin/tapedeck ", "build/bin/tapedeck-viewer "})
    if (starts(line, program)) return true;
  return false;
}

// ---- reading the blocks of a page ----

class Page {
 public:
  Page(const std::string& root, std::string name) : name_(std::move(name)) {
    std::ifstream file(root + "/" + name_);
    if (!file) fault(name_, 1, "cannot be read");
    int number = 0;
    for (std::string text; std::getline(file, text);) lines_.push_back({++number, text});
  }

  std::vector<Block> blocks() {
    Block next = empty();
    while (at_ < lines_.size()) {
      const Line& line = lines_[at_];
      if (starts(line.text, "```")) {
        next.line = line.number;
        next.language = trimmed(line.text.substr(3));
        ++at_;
        next.lines = until("```", line.number);
        blocks_.push_back(std::move(next));
        next = empty();
      } else if (line.text == "<!-- preamble") {
        ++at_;
        next.preamble = until("-->", line.number);
        next.line = line.number;
      } else if (starts(line.text, "<!-- not run")) {
        if (between(line.text, "<!-- not run:", "-->").empty())
          fault(name_, line.number, "give a reason: <!-- not run: REASON -->");
        next.skipped = true;
        next.line = line.number;
        ++at_;
      } else if (starts(line.text, "<!-- quotes")) {
        next.quoted = between(line.text, "<!-- quotes:", "-->");
        if (next.quoted.empty()) fault(name_, line.number, "name a file: <!-- quotes: FILE -->");
        next.line = line.number;
        ++at_;
      } else {
        if (next.line && !trimmed(line.text).empty()) {
          fault(name_, next.line, "no block follows this comment");
          next = empty();
        }
        if (starts(line.text, "    ") && (at_ == 0 || trimmed(lines_[at_ - 1].text).empty()))
          indented();
        else
          ++at_;
      }
    }
    if (next.line) fault(name_, next.line, "no block follows this comment");
    return std::move(blocks_);
  }

 private:
  Block empty() const {
    Block block;
    block.page = name_;
    return block;
  }

  Lines until(const std::string& end, int from) {
    Lines lines;
    for (; at_ < lines_.size() && lines_[at_].text != end; ++at_) lines.push_back(lines_[at_]);
    if (at_ == lines_.size())
      fault(name_, from, "never closed by " + end);
    else
      ++at_;
    return lines;
  }

  // An indented block should be a drawing. If all of its lines are commands or statements, it belongs in a fence, where it
  // is tested.
  void indented() {
    const int from = lines_[at_].number;
    int lines = 0, commands = 0, statements = 0;
    for (; at_ < lines_.size() && starts(lines_[at_].text, "    "); ++at_, ++lines) {
      const std::string text = trimmed(lines_[at_].text.substr(0, lines_[at_].text.find("//")));
      commands += is_command(text);
      statements += !text.empty() && text.back() == ';';
    }
    if (commands == lines) fault(name_, from, "commands belong in a ```sh block");
    if (statements == lines) fault(name_, from, "C++ belongs in a ```cpp block");
  }

  std::string name_;
  Lines lines_;
  std::size_t at_ = 0;
  std::vector<Block> blocks_;
};

// ---- blocks that quote a file ----

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The text without comments and spaces.
std::string bare(const std::string& text) {
  std::string kept;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "//") == 0) i = std::min(text.find('\n', i), text.size() - 1);
    if (!std::isspace(static_cast<unsigned char>(text[i]))) kept += text[i];
  }
  return kept;
}

void check_quote(const Block& block, const std::string& root) {
  std::string text;
  for (const Line& line : block.lines) text += line.text + "\n";
  if (bare(read_file(root + "/" + block.quoted)).find(bare(text)) == std::string::npos)
    fault(block.page, block.line, block.quoted + " does not hold this text");
}

// ---- C++ and graph blocks ----

std::string name_of(const Block& block) {
  std::string name = block.page;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name + "_line_" + std::to_string(block.line);
}

bool is_include(const Line& line) { return starts(line.text, "#include"); }

bool has_main(const Block& block) {
  return std::any_of(block.lines.begin(), block.lines.end(), [](const Line& line) { return starts(line.text, "int main("); });
}

// Only the first line gets a #line directive, because a later line may lie inside of a string.
void write_lines(std::ostream& out, const std::string& page, const Lines& lines) {
  if (lines.empty()) return;
  out << "#line " << lines.front().number << " \"" << page << "\"\n";
  for (const Line& line : lines) out << (is_include(line) ? "" : line.text) << "\n";
}

class Cases {
 public:
  void add(const Block& block) {
    for (const Lines* lines : {&block.preamble, &block.lines})
      for (const Line& line : *lines)
        if (is_include(line)) includes_.push_back(line.text);
    blocks_.push_back(block);
  }

  void write(const std::string& path) const {
    std::ofstream out(path);
    out << "// Made by tests/pages/extract.cpp from the pages.\n#include <tapedeck/engine/text/text.h>\n#include "
           "<tapedeck/tapedeck.h>\n";
    std::vector<std::string> includes = includes_;
    std::sort(includes.begin(), includes.end());
    includes.erase(std::unique(includes.begin(), includes.end()), includes.end());
    for (const std::string& include : includes) out << include << "\n";
    out << "#include <gtest/gtest.h>\n";
    for (const Block& block : blocks_) {
      if (block.language == "graph")
        write_graph(out, block);
      else if (has_main(block))
        write_program(out, block);
      else
        write_fragment(out, block);
    }
  }

 private:
  static void write_graph(std::ostream& out, const Block& block) {
    out << "TEST(Pages, " << name_of(block) << ") {\n  EXPECT_NO_THROW(tapedeck::parse(R\"PAGE(";
    for (int line = 1; line <= block.line; ++line) out << "\n";  // empty lines, so that an error names the line of the page
    for (const Line& line : block.lines) out << line.text << "\n";
    out << ")PAGE\", \"" << block.page << "\"));\n}\n";
  }

  // Inside a namespace, main() is an ordinary function and must return a value. Its closing brace is the last brace without
  // indent.
  static void write_program(std::ostream& out, const Block& block) {
    out << "namespace " << name_of(block) << " {\n#define main program\n";
    write_lines(out, block.page, block.preamble);
    Lines lines = block.lines;
    for (auto line = lines.rbegin(); line != lines.rend(); ++line)
      if (line->text == "}") {
        line->text = "return 0; }";
        break;
      }
    write_lines(out, block.page, lines);
    out << "#undef main\n}\nTEST(Pages, " << name_of(block) << ") { EXPECT_EQ(" << name_of(block) << "::program(), 0); }\n";
  }

  static void write_fragment(std::ostream& out, const Block& block) {
    out << "TEST(Pages, " << name_of(block) << ") {\nusing namespace tapedeck;\n";
    write_lines(out, block.page, block.preamble);
    write_lines(out, block.page, block.lines);
    out << "}\n";
  }

  std::vector<std::string> includes_;
  std::vector<Block> blocks_;
};

// ---- shell commands ----

class Script {
 public:
  void add(const Block& block) {
    if (block.page != page_) text_ += "page " + (page_ = block.page) + "\n";
    if (!block.preamble.empty()) text_ += place(block.preamble.front());
    for (const Line& line : block.preamble) text_ += line.text + "\n";
    for (const Line& line : block.lines) {
      if (line.text.empty() || line.text[0] == '#') continue;
      if (!is_command(line.text)) {
        fault(block.page, line.number,
              "only commands of tapedeck are run here: take this one elsewhere, or mark the block as not run");
        continue;
      }
      add_line(line);
    }
  }

  void write(const std::string& path, const std::string& root) const {
    std::ofstream(path) << R"(#!/usr/bin/env bash
# Made by tests/pages/extract.cpp from the pages.
#   pages.sh BIN      the folder of the programs; makes a folder for each page below the current one
set -euo pipefail
bin=$1
top=$PWD
export PATH="$bin:$PATH"
viewer=1
[[ -x $bin/tapedeck-viewer ]] || viewer=0
trap 'echo "$at: error: this command failed" >&2' ERR
page() {
  cd "$top"
  rm -rf "$1"
  mkdir -p "$1/build"
  cd "$1"
  ln -s "$bin" build/bin
  ln -s ")" << root << R"(/tests" tests
}
)" << text_;
  }

 private:
  std::string place(const Line& line) const { return "at=" + page_ + ":" + std::to_string(line.number) + "\necho \"$at\"\n"; }

  void add_line(const Line& line) {
    text_ += place(line);
    if (line.text.find("tapedeck-viewer") != std::string::npos)
      text_ += "if ((viewer)); then\n" + line.text + "\nfi\n";
    else
      text_ += line.text + "\n";
  }

  std::string page_, text_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "extract OUT.cpp OUT.sh DEPFILE ROOT PAGE...\n");
    return 2;
  }
  const std::string root = argv[4];
  Cases cases;
  Script script;
  std::string read = std::string(argv[1]) + ":";
  for (int i = 5; i < argc; ++i) {
    read += " " + root + "/" + argv[i];
    for (const Block& block : Page(root, argv[i]).blocks()) {
      if (!block.quoted.empty()) {
        read += " " + root + "/" + block.quoted;
        check_quote(block, root);
        if (has_main(block)) cases.add(block);
      } else if (block.skipped) {
        continue;
      } else if (block.language == "cpp" || block.language == "graph") {
        cases.add(block);
      } else if (block.language == "sh") {
        script.add(block);
      } else if (!block.language.empty() && block.language != "json") {
        fault(block.page, block.line, "a block is cpp, graph, sh, json or nothing, not " + block.language);
      }
    }
  }
  if (faults) return 1;
  cases.write(argv[1]);
  script.write(argv[2], root);
  std::ofstream(argv[3]) << read << "\n";
  return 0;
}
