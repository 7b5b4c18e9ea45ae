#include <tapedeck/engine/ir/site_note.h>

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace tapedeck {

Name site_note(Site site) {
  if (site.line == 0) return {};
  const std::string_view file = site.file;
  const std::size_t slash = file.rfind('/');
  return Name(fmt::format("{}:{}", slash == file.npos ? file : file.substr(slash + 1), site.line));
}

Site site_of(const Origin& origin) {
  const std::string_view text = origin.site.view();
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {};
  int line = 0;
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), line);
  return {Name(text.substr(0, colon)).view().data(), line};  // the characters of a Name live as long as the process
}

}  // namespace tapedeck
