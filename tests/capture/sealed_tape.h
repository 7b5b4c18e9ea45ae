// Takes a .tape file apart, lets a test change it, and writes it with correct lengths and checksums, like a forged file or a
// file of a buggy program.
#pragma once

#include <tapedeck/capture/file/tape_file.h>
#include <tapedeck/capture/formats/safetensors.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck {

inline Bytes bytes_of(const std::string& s) { return {reinterpret_cast<const unsigned char*>(s.data()), s.size()}; }

struct SealedTape {
  struct Part {
    Type type;
    std::string bytes;
  };
  std::map<std::string, std::string> metadata;
  std::map<std::string, Part> tensors;

  explicit SealedTape(const std::string& file) {
    Safetensors parsed = read_safetensors(MemorySource(bytes_of(file), "sealed"));
    metadata = std::move(parsed.metadata);
    for (const TensorPlace& t : parsed.tensors) tensors[t.name] = {t.type, file.substr(t.begin, t.size())};
  }

  void set_text(const std::string& name, const std::string& text) {
    tensors[name] = {{DType::u8, {static_cast<std::int64_t>(text.size())}}, text};
  }

  std::string seal() const {
    std::vector<std::pair<std::string, std::string>> entries = {{"tapedeck.header_checksum", std::string(16, '0')}};
    for (const auto& entry : metadata)
      if (entry.first != "tapedeck.header_checksum" && !entry.first.starts_with("tapedeck.checksum.")) entries.push_back(entry);
    std::vector<StoredTensor> stored;
    std::string data;
    for (const auto& [name, part] : tensors) {
      entries.emplace_back("tapedeck.checksum." + name, checksum_text(checksum(bytes_of(part.bytes))));
      stored.push_back({name, part.type, bytes_of(part.bytes)});
      data += part.bytes;
    }
    std::string header = safetensors_header(entries, stored, 64);
    header.replace(53, 16, checksum_text(tape_file::header_checksum(bytes_of(header))));
    return header + data;
  }
};

}  // namespace tapedeck
