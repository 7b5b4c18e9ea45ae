#include <tapedeck/capture/explain/plan_csv.h>

#include <tapedeck/capture/explain/memory_map.h>
#include <tapedeck/capture/plan/arena_chunks.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

namespace {

struct Row {
  std::int64_t offset = 0, end = 0;
  NodeId first = 0, last = -1;
  const MemoryBox* box = nullptr;  // the first one, which names the buffer
};

std::string field(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  if (text.find_first_of(",\"") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string shape_text(const Shape& shape) {
  std::string text;
  for (int i = 0; i < shape.rank; ++i) text += fmt::format("{}{}", i ? "x" : "", shape[i]);
  return text;
}

std::vector<Row> rows_of(const MemoryMap& map) {
  std::vector<Row> rows(static_cast<std::size_t>(map.buffers));
  for (const MemoryBox& box : map.arena) {
    Row& row = rows[box.buffer];
    if (row.box == nullptr) {
      row = {box.offset, box.offset + box.bytes, box.first, box.last, &box};
      continue;
    }
    row.last = std::max(row.last, box.last);  // a value that takes a buffer over takes all of it
  }
  return rows;
}

}  // namespace

std::string plan_csv(const Plan& plan) {
  const Graph& g = plan.graph;
  const MemoryMap map = map_memory(plan);
  const ArenaChunks chunks(plan);
  const bool in_chunks = !plan.chunks.empty();
  std::string text = fmt::format("id,lower,upper,size,offset,alignment,name,where,reason,node,phase,site,dtype,shape{}\n",
                                 in_chunks ? ",arena" : "");
  std::int32_t id = 0;
  for (const Row& row : rows_of(map)) {
    if (!row.box) continue;
    const MemoryBox& box = *row.box;
    const Node& node = g.nodes[box.node];
    const std::int64_t item = box.value == kNone ? 64 : static_cast<std::int64_t>(dtype_size(g.values[box.value].type.dtype));
    const std::int32_t chunk = chunks.of(row.offset);
    const std::int64_t offset = row.offset - chunks.start(chunk);
    text += fmt::format("{},{},{},{},{},{},{},arena,{},{},{},{},", id++, row.first, row.last + 1, row.end - row.offset, offset,
                        std::max(plan.alignment, item), field(box_name(plan, box)),
                        box.value == kNone ? "workspace" : reason_name(plan.values[box.value].reason), box.node,
                        phase_name(node.origin.phase), field(node.origin.site.str()));
    if (box.value != kNone)
      text += fmt::format("{},{}", dtype_name(g.values[box.value].type.dtype), shape_text(g.values[box.value].type.shape));
    else
      text += "u8," + std::to_string(box.bytes);
    if (in_chunks) text += fmt::format(",{}", chunk);
    text += '\n';
  }
  return text;
}

}  // namespace tapedeck
