// A folder of a live view that a test writes itself, as a program would.
#pragma once

#include <tapedeck/tests/viewer/folder.h>

#include <tapedeck/capture/live/live_folder.h>
#include <tapedeck/capture/live/live_records.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

namespace tapedeck::viewer {

class LiveFolder {
 public:
  explicit LiveFolder(const std::string& base, const std::string& name = "train") {
    folder_ = live::make_program_folder(base, name);
    directory_ = live::open_folder(folder_);
    alive_ = live::lock_alive(directory_.get());
    live::write_info(directory_.get(), {name, 4711, 1789000000});
    begin_chunk();
  }
  const std::string& path() const { return folder_; }
  void begin_chunk() {
    live::Bytes bytes;
    live::append_chunk_header(++chunk_, &bytes);
    write(bytes);
  }
  void write(const live::Bytes& bytes) const {
    std::ofstream file(chunk_path(chunk_), std::ios::binary | std::ios::app);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void add(const live::Record& record) const {
    live::Bytes bytes;
    live::append(record, &bytes);
    write(bytes);
  }
  std::string chunk_path(std::uint64_t number) const { return folder_ + "/chunk-0000000" + std::to_string(number); }
  void die() { alive_ = {}; }
  std::string request() const { return read(folder_ + "/request"); }

  // Calls as of a little net: their bytes rise in forward and fall in backward.
  void add_calls(std::uint64_t from, std::uint64_t to) const {
    live::Bytes bytes;
    for (std::uint64_t i = from; i < to; ++i) live::append(call(i), &bytes);
    write(bytes);
  }
  void add_texts() const {
    for (const auto& [id, text] : {std::pair<std::uint32_t, const char*>{1, "matmul"},
                                   {2, "relu"},
                                   {3, "block.0.fc1"},
                                   {4, "block.1.fc2"},
                                   {5, "/home/me/net.cpp"}})
      add(live::TextRecord{id, text});
  }
  static live::OpRecord call(std::uint64_t i) {
    live::OpRecord r;
    const auto place = static_cast<std::int64_t>(i % 20);
    r.index = i;
    r.time_ns = static_cast<std::int64_t>(i) * 10'000;
    r.live = (100 + 10 * (place < 10 ? place : 20 - place)) * 1024;
    r.bytes = 10 * 1024;
    r.op = i % 2 == 0 ? 1 : 2, r.path = place % 10 < 5 ? 3 : 4, r.file = 5, r.line = 7 + static_cast<std::int32_t>(place);
    r.phase = place < 10 ? Phase::forward : Phase::backward;
    r.n_results = r.n_types = 1;
    r.types[0].shape.rank = 2, r.types[0].shape[0] = 64, r.types[0].shape[1] = 40;
    return r;
  }

 private:
  std::string folder_;
  live::Descriptor directory_, alive_;
  std::uint64_t chunk_ = 0;
};

}  // namespace tapedeck::viewer
