#include <tapedeck/capture/tool/files/outputs.h>

#include <tapedeck/capture/tool/files/terminal.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace tapedeck::tool {

namespace {

bool same_file(const std::string& a, const std::string& b) {
  if (a == b) return true;
  if (a == "-" || b == "-") return false;
  std::error_code failed;
  if (std::filesystem::equivalent(a, b, failed)) return true;
  const auto whole = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, failed), failed);
  };
  return whole(a) == whole(b) && !failed;  // neither is there yet
}

[[noreturn]] void refuse_stream(const std::FILE* stream, int error) {
  throw FileError(fmt::format("{}: cannot write: {}", stream == stdout ? "stdout" : "stderr", std::strerror(error)));
}

}  // namespace

void check_outputs(const std::vector<std::string>& inputs, const std::vector<OutputFile>& outputs) {
  for (auto out = outputs.begin(); out != outputs.end(); ++out) {
    if (out->path.empty()) continue;
    if (out->path == "-" && !out->is_text)
      throw UsageError(fmt::format("{} -: this is not written to stdout; name a file", out->option));
    for (const std::string& in : inputs)
      if (out->path != "-" && !in.empty() && same_file(in, out->path))
        throw UsageError(
            fmt::format("{} {}: it would overwrite {}, which is read; name another file", out->option, out->path, in));
    for (auto other = outputs.begin(); other != out; ++other)
      if (!other->path.empty() && same_file(other->path, out->path))
        throw UsageError(
            fmt::format("{} {} and {} {} are one file; name two files", other->option, other->path, out->option, out->path));
  }
}

void write_text(const std::string& path, std::string_view text) {
  if (path == "-") {
    answer(text);
    return finish_answer();
  }
  AtomicWriter writer(path);
  writer.write(text);
  writer.commit();
}

void answer(std::string_view text, std::FILE* stream) {
  clear_progress();
  if (std::fwrite(text.data(), 1, text.size(), stream) != text.size()) refuse_stream(stream, errno);
}

void finish_answer() {
  const bool has_failed = std::ferror(stdout) != 0;
  if (std::fflush(stdout) != 0) refuse_stream(stdout, errno);
  if (has_failed) refuse_stream(stdout, EIO);
}

std::FILE* answers_beside(const std::string& path) { return path == "-" ? stderr : stdout; }

}  // namespace tapedeck::tool
