#include <tapedeck/capture/formats/file_checksum.h>

#include <tapedeck/capture/formats/checksum.h>
#include <tapedeck/engine/ir/error.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace tapedeck {

std::string file_checksum(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) throw FileError(path + ": cannot read: " + std::strerror(errno));
  ChecksumState state;
  std::vector<unsigned char> buffer(1 << 18);
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get())) state.add({buffer.data(), n});
  if (std::ferror(file.get())) throw FileError(path + ": cannot read: " + std::strerror(errno));
  return checksum_text(state.sum());
}

std::string strings_checksum(const std::vector<std::string>& strings) {
  ChecksumState state;
  for (const std::string& text : strings) {
    const std::uint64_t size = text.size();
    state.add({reinterpret_cast<const unsigned char*>(&size), sizeof size});
    state.add({reinterpret_cast<const unsigned char*>(text.data()), text.size()});
  }
  return checksum_text(state.sum());
}

}  // namespace tapedeck
