#include <tapedeck/capture/onnx/external_data.h>

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace tapedeck::onnx {

namespace {

namespace fs = std::filesystem;

std::int64_t number_of(const TensorData& data, const std::string& key, std::int64_t otherwise, const std::string& model_path) {
  const auto it = data.external.find(key);
  if (it == data.external.end()) return otherwise;
  std::int64_t value = -1;
  const std::string& text = it->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw ParseError(
        fmt::format("{}: tensor '{}': the {} '{}' of its external data is no size", model_path, data.name, key, text));
  return value;
}

// The file, opened. The file that is checked is the one that is open: the path of the open file itself must be in the folder.
class ExternalFile {
 public:
  ExternalFile(const TensorData& data, const std::string& model_path) {
    const std::string& location = data.external.at("location");
    const auto refuse = [&] {
      throw ParseError(fmt::format("{}: tensor '{}': its external data '{}' is not in the folder of the model", model_path,
                                   data.name, location));
    };
    if (location.empty() || location.find('\0') != std::string::npos || fs::path(location).is_absolute()) refuse();
    for (const fs::path& part : fs::path(location))
      if (part == "..") refuse();
    std::error_code error;
    const fs::path folder = fs::canonical(fs::absolute(model_path).parent_path(), error);
    if (error) throw FileError(fmt::format("{}: cannot find its folder: {}", model_path, error.message()));
    path_ = (folder / location).string();
    fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd_ < 0) throw FileError(fmt::format("{}: cannot open it: {}", path_, std::strerror(errno)));
    struct stat about {};
    if (fstat(fd_, &about) != 0 || !S_ISREG(about.st_mode)) {
      close(fd_);
      throw FileError(path_ + ": it is no regular file");
    }
    const fs::path opened = fs::read_symlink(fmt::format("/proc/self/fd/{}", fd_), error);
    const std::string inside = folder == folder.root_path() ? folder.string() : folder.string() + "/";
    if (error || !opened.string().starts_with(inside)) {
      close(fd_);
      refuse();
    }
    bytes_ = about.st_size;
  }
  ~ExternalFile() { close(fd_); }
  ExternalFile(const ExternalFile&) = delete;

  std::int64_t bytes() const { return bytes_; }
  void read(void* to, std::int64_t offset, std::int64_t count) const {
    auto* at = static_cast<char*>(to);
    while (count > 0) {
      const ssize_t got = pread(fd_, at, static_cast<std::size_t>(count), offset);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0)
        throw FileError(fmt::format("{}: cannot read it: {}", path_, got < 0 ? std::strerror(errno) : "it ends too early"));
      at += got;
      offset += got;
      count -= got;
    }
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
  std::int64_t bytes_ = 0;
};

}  // namespace

Tensor read_external(const TensorData& data, const Type& type, const std::string& model_path) {
  const std::int64_t offset = number_of(data, "offset", 0, model_path);
  const std::int64_t length = number_of(data, "length", type.bytes(), model_path);
  if (length != type.bytes())
    throw ParseError(fmt::format("{}: tensor '{}' has {} bytes of external data instead of {}", model_path, data.name, length,
                                 type.bytes()));
  const ExternalFile file(data, model_path);
  if (offset > file.bytes() || length > file.bytes() - offset)
    throw FileError(fmt::format("{}: it is too short for tensor '{}'", file.path(), data.name));
  const AbstractMode concrete(false);
  Tensor tensor = empty(type);
  auto* bytes = static_cast<unsigned char*>(tensor.mutable_data());
  file.read(bytes, offset, length);
  if (type.dtype == DType::boolean)
    for (std::int64_t i = 0; i < length; ++i) bytes[i] = bytes[i] != 0;
  return tensor;
}

}  // namespace tapedeck::onnx
