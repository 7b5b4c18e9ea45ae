// Prints the results of explain_peak() and explain_memory() as text of at most 150 columns.
#include <tapedeck/capture/explain/explain_memory.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

namespace {

std::string at_site(const std::string& site) { return site.empty() ? "" : " (" + site + ")"; }

constexpr std::size_t kMostListed = 40, kMostDetailed = 12;
constexpr std::size_t kLongestLine = 150, kLongestText = 110, kLongestName = 28;

bool continues_a_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }  // in UTF-8

std::string cut(const std::string& text, std::size_t most = kLongestText) {
  if (text.size() <= most) return text;
  std::size_t end = most - 3;
  while (end > 0 && continues_a_character(text[end])) --end;
  return text.substr(0, end) + "...";
}

// At blanks, below each other.
std::string wrapped(std::string text, std::size_t indent) {
  const std::string margin(indent, ' ');
  std::string lines;
  while (text.size() > kLongestLine - indent) {
    const std::size_t blank = text.rfind(' ', kLongestLine - indent);
    if (blank == std::string::npos || blank == 0) break;
    lines += margin + text.substr(0, blank) + "\n";
    text.erase(0, blank + 1);
  }
  return lines + margin + cut(text, kLongestLine - indent) + "\n";
}

std::string tenant_line(const PeakTenant& t) {
  return cut(fmt::format("  {:>14}  {:<28} {:<20} {:<15} nodes {}..{}{}", t.bytes, cut(t.name, kLongestName), t.type, t.reason,
                         t.first, t.last, t.module.empty() ? "" : ", " + t.module),
             kLongestLine) +
         "\n";
}

std::string binding_line(const BindingNode& b) {
  const std::string mark = b.binds ? "  BINDS" : "";
  return cut(fmt::format("  {:>14}  node {}: {}{}", b.own_bytes, b.node, cut(b.text, kLongestText - 25), at_site(b.site)),
             kLongestLine - mark.size()) +
         mark + "\n";
}

}  // namespace

std::string to_text(const PeakExplanation& e) {
  if (e.node == kNone)
    return fmt::format("the graph has no nodes: inputs, state, constants and outputs, {} bytes, are all there is\n",
                       e.external_bytes);
  std::string text =
      fmt::format("the most bytes are alive at node {}: {}\n  {}{}, and at {} more node{}\n", e.node, e.live_bytes, cut(e.text),
                  at_site(e.site), e.nodes_at_peak - 1, e.nodes_at_peak == 2 ? "" : "s");
  text += fmt::format("  {} bytes are inputs, state, constants and outputs; {} in the arena, in {} pieces:\n", e.external_bytes,
                      e.arena_live_bytes, e.alive.size());
  for (std::size_t i = 0; i < std::min(e.alive.size(), kMostListed); ++i) {
    const PeakTenant& t = e.alive[i];
    text += tenant_line(t);
    if (i >= kMostDetailed) continue;
    if (t.value != kNone) text += wrapped(fmt::format("made by {}{}", cut(t.maker), at_site(t.made_at)), 18);
    if (!t.reader.empty()) text += wrapped(fmt::format("kept for {}{}", cut(t.reader), at_site(t.read_at)), 18);
    if (!t.advice.empty()) text += wrapped(t.advice, 18);
  }
  if (e.alive.size() > kMostListed) {
    std::int64_t rest = 0;
    for (std::size_t i = kMostListed; i < e.alive.size(); ++i) rest += e.alive[i].bytes;
    text += fmt::format("  {:>14}  in {} smaller ones\n", rest, e.alive.size() - kMostListed);
  }
  text +=
      "nodes that need the most by themselves (always held + operands, workspace, results that cannot be in place);\n"
      "  BINDS: no order and no recomputing gets below:\n";
  for (const BindingNode& b : e.binding) text += binding_line(b);
  text += fmt::format("peak {} = lower bound {} + {} by placement:\n", e.peak_bytes, e.peak_bytes - e.gap_bytes, e.gap_bytes);
  text += wrapped(e.gap_reason, 2);
  return text;
}

std::string to_text(const MemoryExplanation& e) {
  std::string text = fmt::format(
      "peak {} bytes: {} always held + arena {}; lower bound {} (x{:.4f}), {} bytes by placement, of which {} by alignment to "
      "{}\n",
      e.peak_bytes, e.external_bytes, e.arena_bytes, e.lower_bound_bytes,
      e.lower_bound_bytes > 0 ? static_cast<double>(e.peak_bytes) / static_cast<double>(e.lower_bound_bytes) : 1.0, e.gap_bytes,
      e.alignment_bytes, e.alignment);
  if (e.apart_bytes > 0)
    text += fmt::format(
        "  {} of these by keeping bytes apart for {} threads, so that branches need not wait for each other's (--explain peak "
        "says more)\n",
        e.apart_bytes, e.threads);
  text += fmt::format(
      "order: {}; {} values lie in the arena, in {} buffers, workspaces counted; side by side all would be {} bytes\n", e.order,
      e.arena_values, e.arena_buffers, e.unshared_bytes);
  if (!e.chunks.empty())
    text += fmt::format("the arena is {} chunk{} of no more than {} bytes, but for what is larger by itself\n", e.chunks.size(),
                        e.chunks.size() == 1 ? "" : "s", e.chunk_bytes);
  const auto table = [&](const char* title, const std::vector<MemoryTotal>& rows) {
    text += fmt::format("{:<18} {:>8} {:>16} {:>16}\n", title, "count", "bytes", "at the peak");
    for (const MemoryTotal& t : rows)
      text += fmt::format("  {:<16} {:>8} {:>16} {:>16}\n", t.name, t.count, t.bytes, t.peak_bytes);
  };
  table("by role", e.roles);
  table("by reason", e.reasons);
  if (!e.chunks.empty()) table("by chunk", e.chunks);
  text += fmt::format("{:<18} {:>8} {:>16}\n", "sharing rules", "used", "bytes not needed");
  for (const SharingUse& u : e.sharing) text += fmt::format("  {:<16} {:>8} {:>16}\n", u.rule, u.count, u.bytes);
  if (!e.unruled.empty()) table("under no rule", e.unruled);
  text += "  add_to: pieces that are added where they arise are no values of the plan, so none are counted; see its bound\n";
  return text;
}

}  // namespace tapedeck
