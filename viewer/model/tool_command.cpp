#include <tapedeck/viewer/model/tool_command.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace tapedeck::viewer {

namespace {

std::string cpp_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      quoted += std::string("\\") + c;
    else if (byte < 32 || byte == 127)
      quoted += fmt::format("\\{:03o}", byte);
    else
      quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

std::string shell_word(const std::string& word) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("_-./:=+,%@").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::vector<std::string> tool_words(const Document& document, const std::vector<Wish>& wishes, std::int64_t budget) {
  const PlanOptions &o = document.options, none;
  std::vector<std::string> words = {"tapedeck", "plan", document.path, "--again"};
  const auto add = [&](const char* option, const std::string& value) { words.insert(words.end(), {option, value}); };
  if (budget >= 0) add("--budget", std::to_string(budget));
  if (o.strategy != none.strategy) add("--strategy", strategy_name(o.strategy));
  if (o.ordering == Ordering::recorded) add("--order", "recorded");
  if (o.level != none.level) add("--level", std::to_string(static_cast<int>(o.level)));
  if (o.alignment != none.alignment && o.alignment != default_alignment(o.device)) add("--align", std::to_string(o.alignment));
  if (o.chunk_bytes != 0) add("--chunk", std::to_string(o.chunk_bytes));
  if (o.threads != none.threads) add("--threads", std::to_string(o.threads));
  if (o.parallel_peak != none.parallel_peak) add("--parallel-peak", fmt::format("{}", o.parallel_peak));
  if (o.segment_us != none.segment_us) add("--segment-us", fmt::format("{}", o.segment_us));
  if (o.split_phases) words.push_back("--split-phases");
  if (document.costs != CostSource::best) add("--costs", cost_source_name(document.costs));
  for (const Wish& wish : wishes) add(wish.kind == WishKind::keep ? "--keep" : "--recompute", wish.pattern);
  return words;
}

std::string tool_line(const Document& document, const std::vector<Wish>& wishes, std::int64_t budget) {
  std::string line;
  for (const std::string& word : tool_words(document, wishes, budget)) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

std::string wishes_as_cpp(const std::vector<Wish>& wishes) {
  std::string text = "options.wishes = {";
  for (const Wish& wish : wishes)
    text += fmt::format("{}{{WishKind::{}, {}}}", text.back() == '{' ? "" : ", ",
                        wish.kind == WishKind::keep ? "keep" : "recompute", cpp_text(wish.pattern));
  return text + "};";
}

}  // namespace tapedeck::viewer
