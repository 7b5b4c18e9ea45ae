#include <tapedeck/viewer/saved/session_file.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/capture/formats/checksum.h>
#include <tapedeck/capture/formats/input_file.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/viewer/model/document.h>

#include <filesystem>
#include <system_error>

namespace tapedeck::viewer {

namespace {

constexpr const char* kEnding = ".session";

std::filesystem::file_type type_of(const std::string& path) {
  std::error_code none;
  return std::filesystem::symlink_status(path, none).type();
}

bool is_there(const std::string& path) {
  const std::filesystem::file_type type = type_of(path);
  return !path.empty() && type != std::filesystem::file_type::not_found && type != std::filesystem::file_type::none;
}

void check_regular(const std::string& path) {
  if (type_of(path) != std::filesystem::file_type::regular) throw FileError(path + " is no regular file");
}

void write_to(const std::string& path, std::string_view text) {
  if (is_there(path)) check_regular(path);
  AtomicWriter out(path);
  out.write(text);
  out.commit();
}

bool remove_file(const std::string& path) {
  if (!is_there(path)) return false;
  check_regular(path);
  std::error_code error;
  if (std::filesystem::remove(path, error)) return true;
  throw FileError(path + ": cannot remove: " + error.message());
}

}  // namespace

SessionPlaces session_places(const std::string& path, const std::string& own_folder, const std::string& absolute_path) {
  SessionPlaces places{path + kEnding, ""};
  const Bytes bytes(reinterpret_cast<const unsigned char*>(absolute_path.data()), absolute_path.size());
  if (!own_folder.empty()) places.own = own_folder + "/" + base_name(path) + "-" + checksum_text(checksum(bytes)) + kEnding;
  return places;
}

FoundSession find_session(const SessionPlaces& places) {
  FoundSession found;
  for (const std::string& path : {places.own, places.beside}) {
    if (!is_there(path)) continue;
    found.path = path;
    try {
      check_regular(path);
      found.saved = read_session(read_text_file(path, kMostSessionBytes));
    } catch (const Error& error) {
      found.notes.push_back("the session " + base_name(path) + " is ignored: " + error.what());
    }
    return found;
  }
  return found;
}

std::string write_session(const SessionPlaces& places, std::string_view text) {
  try {
    write_to(places.beside, text);
    if (is_there(places.own)) remove_file(places.own);
    return places.beside;
  } catch (const FileError&) {
    if (places.own.empty()) throw;
  }
  std::error_code later;  // a folder that cannot be made is an error of the file in it
  std::filesystem::create_directories(std::filesystem::path(places.own).parent_path(), later);
  write_to(places.own, text);
  return places.own;
}

bool remove_session(const SessionPlaces& places) {
  const bool own = remove_file(places.own);
  return remove_file(places.beside) || own;
}

}  // namespace tapedeck::viewer
