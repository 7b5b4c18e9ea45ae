// Writes Python's pickle, as much of it as plain data needs: dictionaries, lists, strings, integers, booleans, None.
//
// Protocol 2, and only opcodes that both CPython and PyTorch's memory viewer read. A string that was written before is fetched
// from the memo, so that keys and call sites cost two to five bytes each. Format: CPython, Lib/pickletools.py.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace tapedeck {

class PickleWriter {
 public:
  PickleWriter() : bytes_("\x80\x02") {}

  PickleWriter& begin_list() { return put(']'); }
  PickleWriter& end_item() { return put('a'); }  // the value just written becomes the list's next item
  PickleWriter& begin_dict() { return put('}'); }
  PickleWriter& key(std::string_view name) { return value(name); }
  PickleWriter& end_member() { return put('s'); }  // the key and the value just written become a member
  PickleWriter& value(std::string_view text);      // bytes that are not UTF-8 become U+FFFD, because readers decode strictly
  PickleWriter& value(const char* text) { return value(std::string_view(text)); }
  PickleWriter& value(std::int64_t number);
  PickleWriter& value(bool flag) { return put(flag ? '\x88' : '\x89'); }
  PickleWriter& none() { return put('N'); }
  template <class T>
  PickleWriter& member(std::string_view name, const T& what) {
    return key(name).value(what).end_member();
  }

  // The whole pickle. The writer is empty afterwards.
  std::string take() { return std::move(put('.').bytes_); }

 private:
  PickleWriter& put(char byte) {
    bytes_ += byte;
    return *this;
  }
  void little_endian(std::uint64_t number, int n_bytes);
  void indexed(char short_code, char long_code, std::uint32_t index);

  std::string bytes_;
  std::unordered_map<std::string, std::uint32_t> memo_;  // only ever looked up
};

}  // namespace tapedeck
