// Collects segments, blocks and events once, and writes them twice: as a pickle in the layout of PyTorch, and as JSON.
#include <tapedeck/capture/explain/memory_snapshot.h>

#include <tapedeck/capture/explain/live_blocks.h>
#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/formats/pickle.h>
#include <tapedeck/capture/replay/program/buffer_table.h>

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

namespace tapedeck {

namespace {

constexpr std::int64_t kFirstAddress = 0x7f0000000000, kAddressStep = 1 << 21;

struct Frame {
  std::string name, file;
  std::int64_t line = 0;
};

// "train.cpp:12", split; what has no line is all file.
Frame frame_at(std::string name, std::string_view site) {
  Frame frame{std::move(name), std::string(site), 0};
  const std::size_t colon = site.rfind(':');
  std::int64_t line = 0;
  if (colon != site.npos) {
    const char* const end = site.data() + site.size();
    const auto [stop, error] = std::from_chars(site.data() + colon + 1, end, line);
    if (error == std::errc() && stop == end) {
      frame.file = site.substr(0, colon);
      frame.line = line;
    }
  }
  if (frame.file.empty()) frame.file = "??";
  return frame;
}

// Bytes with one owner: a block of the arena, or a buffer of its own.
struct Owned {
  std::string value;  // "%h: f32[4]"; of workspace, the node's first result
  std::string category;
  NodeId node = kNone;  // the node that makes it
  std::vector<Frame> frames;
};

struct AddressRange {
  std::int64_t address = 0, bytes = 0;
  Owned of;
};

struct Event {
  std::int64_t at_ns = 0, address = 0, bytes = 0;
  bool begins = true;
  const Owned* of = nullptr;
};

class MemoryTrace {
 public:
  MemoryTrace(const Plan& plan, const Timeline& run)
      : plan_(plan), chunks_(plan), run_ns_(run.run_ns), live_(live_blocks(plan, run)) {
    lay_out_buffers();
    for (const LiveBlock& b : live_.blocks) owned_.push_back(b.value == kNone ? of_workspace(b.first) : of_value(b.value));
    for (auto i = static_cast<std::size_t>(chunks_.count()); i < ranges_.size(); ++i)
      events_.push_back({0, ranges_[i].address, ranges_[i].bytes, true, &ranges_[i].of});
    for (const LiveEvent& e : live_.events) {
      const LiveBlock& b = live_.blocks[e.block];
      const std::int32_t chunk = chunks_.of(b.offset);
      const std::int64_t address = ranges_[chunk].address + b.offset - chunks_.start(chunk);
      events_.push_back({e.at_ns, address, b.bytes, e.begins, &owned_[e.block]});
    }
  }

  std::string pickle() const;
  std::string json() const;

 private:
  Owned of_value(ValueId v) const {
    const Value& value = plan_.graph.values[v];
    Owned owned{fmt::format("%{}: {}", plan_.graph.value_name(v), to_string(value.type)), category_of(v), value.node, {}};
    add_frames(&owned);
    return owned;
  }

  Owned of_workspace(NodeId n) const {
    const Node& node = plan_.graph.nodes[n];
    Owned owned{
        node.n_outputs > 0 ? "workspace of %" + plan_.graph.value_name(node.first_output) : "workspace", "workspace", n, {}};
    add_frames(&owned);
    return owned;
  }

  void add_frames(Owned* owned) const {
    if (owned->node == kNone) {
      owned->frames.push_back(frame_at(owned->value, plan_.graph.name.view()));
      return;
    }
    const Node& node = plan_.graph.nodes[owned->node];
    const char* again = node.origin.clone ? "recomputed by " : "";
    owned->frames.push_back(frame_at(fmt::format("{}{} {}", again, node.op->name, owned->value), node.origin.site.view()));
    if (!node.origin.path.empty()) owned->frames.push_back({node.origin.path.str(), "module", 0});
  }

  std::string category_of(ValueId v) const {
    const Placement& p = plan_.values[v];
    if (p.where == Where::constant) return "constant";
    if (p.where == Where::output) return "output";
    if (p.where != Where::arena) return role_name(plan_.graph.values[v].role);
    switch (p.reason) {
      case Reason::saved:
        return "activation";
      case Reason::recomputed:
        return "recomputed";
      case Reason::gradient:
        return "gradient";
      default:
        return "temporary";
    }
  }

  // The arena's chunks come first. Another buffer is described by the first value that stands in it.
  void lay_out_buffers() {
    const replay::BufferTable table(plan_);
    std::vector<ValueId> in_buffer(table.bytes.size(), kNone);
    for (ValueId v = plan_.graph.value_count(); v-- > 0;)
      if (const replay::BufferId b = table.of(plan_.values[v]); b != kNone) in_buffer[b] = v;
    std::int64_t address = kFirstAddress;
    const auto add = [&](std::int64_t bytes, Owned of) {
      ranges_.push_back({address, bytes, std::move(of)});
      address += (bytes / kAddressStep + 1) * kAddressStep;
    };
    for (std::int32_t c = 0; c < chunks_.count(); ++c)
      add(chunks_.bytes(c), {chunks_.count() == 1 ? "arena" : fmt::format("arena, chunk {}", c), "arena", kNone, {}});
    for (replay::BufferId b = 0; b < static_cast<replay::BufferId>(table.bytes.size()); ++b)
      if (!table.is_chunk(b) && table.bytes[b] > 0 && in_buffer[b] != kNone) add(table.bytes[b], of_value(in_buffer[b]));
  }

  void put_frames(PickleWriter& out, const std::vector<Frame>& frames) const {
    out.key("frames").begin_list();
    for (const Frame& f : frames)
      out.begin_dict()
          .member("name", std::string_view(f.name))
          .member("filename", std::string_view(f.file))
          .member("line", f.line)
          .end_item();
    out.end_member();
  }

  void put_event(PickleWriter& out, const char* action, std::int64_t at_ns, std::int64_t address, std::int64_t bytes,
                 const Owned& of) const {
    out.begin_dict().member("action", action).member("addr", address).member("size", bytes).member("stream", std::int64_t{0});
    out.member("time_us", at_ns / 1000).member("category", std::string_view(of.category));
    put_frames(out, of.frames);
    out.end_item();
  }

  void put_segment(PickleWriter& out, const AddressRange& range, bool held) const {
    const std::int64_t used = held ? range.bytes : 0;
    out.begin_dict().member("device", std::int64_t{0}).member("address", range.address).member("total_size", range.bytes);
    out.member("stream", std::int64_t{0})
        .member("segment_type", range.bytes > 1 << 20 ? "large" : "small")
        .member("is_expandable", false);
    out.member("allocated_size", used).member("active_size", used).member("requested_size", used);
    put_frames(out, range.of.frames);
    out.key("blocks").begin_list().begin_dict();
    out.member("address", range.address).member("size", range.bytes).member("requested_size", used);
    out.member("state", held ? "active_allocated" : "inactive");
    put_frames(out, held ? range.of.frames : std::vector<Frame>{});
    out.end_item().end_member().end_item();
  }

  const Plan& plan_;
  const ArenaChunks chunks_;
  std::int64_t run_ns_;
  LiveBlocks live_;
  std::vector<AddressRange> ranges_;  // the arena's chunks first
  std::vector<Owned> owned_;          // by block
  std::vector<Event> events_;
};

std::string MemoryTrace::pickle() const {
  static const Owned none{"", "unknown", kNone, {}};
  PickleWriter out;
  out.begin_dict().key("segments").begin_list();
  for (const AddressRange& r : ranges_)
    if (r.bytes > 0) put_segment(out, r, &r - ranges_.data() >= chunks_.count());
  out.end_member().key("device_traces").begin_list().begin_list();
  for (const AddressRange& r : ranges_)
    if (r.bytes > 0) put_event(out, "segment_alloc", 0, r.address, r.bytes, r.of);
  for (const Event& e : events_) {
    if (e.begins) {
      put_event(out, "alloc", e.at_ns, e.address, e.bytes, *e.of);
    } else {
      put_event(out, "free_requested", e.at_ns, e.address, e.bytes, *e.of);
      put_event(out, "free_completed", e.at_ns, e.address, e.bytes, *e.of);
    }
  }
  put_event(out, "snapshot", run_ns_, 0, 0, none);
  out.end_item().end_member();
  out.key("allocator_settings").begin_dict().end_member().key("external_annotations").begin_list().end_member();
  return out.take();
}

std::string MemoryTrace::json() const {
  JsonWriter out;
  out.open('{')
      .key("schema")
      .value("tapedeck.memory_trace/1")
      .key("graph")
      .value(plan_.graph.name.view())
      .key("run_ns")
      .value(run_ns_);
  out.key("planned_peak_bytes").value(plan_.peak_bytes).key("external_bytes").value(plan_.external_bytes);
  out.key("arena_bytes").value(plan_.arena_bytes).key("live_peak_bytes").value(live_peak(plan_, live_));
  out.line().key("segments").open('[');
  for (const AddressRange& r : ranges_) {
    out.line().open('{').key("holds").value(r.of.value).key("category").value(r.of.category);
    out.key("address").value(r.address).key("bytes").value(r.bytes).close('}');
  }
  out.close(']').line().key("events").open('[');
  for (const Event& e : events_) {
    out.line().open('{').key("at_ns").value(e.at_ns).key("action").value(e.begins ? "alloc" : "free");
    out.key("address")
        .value(e.address)
        .key("bytes")
        .value(e.bytes)
        .key("holds")
        .value(e.of->value)
        .key("category")
        .value(e.of->category);
    if (e.of->node != kNone) {
      const Node& node = plan_.graph.nodes[e.of->node];
      out.key("node").value(e.of->node).key("op").value(node.op->name);
      if (!node.origin.path.empty()) out.key("path").value(node.origin.path.view());
      if (!node.origin.site.empty()) out.key("site").value(node.origin.site.view());
    }
    out.close('}');
  }
  out.close(']').close('}');
  return out.take() + "\n";
}

}  // namespace

std::string memory_snapshot_pickle(const Plan& plan, const Timeline& run) { return MemoryTrace(plan, run).pickle(); }
std::string memory_trace_json(const Plan& plan, const Timeline& run) { return MemoryTrace(plan, run).json(); }

}  // namespace tapedeck
