// Lets a thread of its own destroy large objects. The model of a plan with 100,000 nodes takes 20 ms to destroy, and the UI
// thread often holds the last reference to it.
#pragma once

#include <memory>

namespace tapedeck::viewer {

// Drops the reference in another thread, some time before the process ends. Any thread may call it; it does not wait.
// REQUIRES: the destructor of the object may run in any thread.
void release_later(std::shared_ptr<const void> reference);

// A pointer like std::make_shared's whose object is destroyed in that other thread, whoever drops the last reference.
template <class T>
std::shared_ptr<const T> released_later(std::unique_ptr<const T> object) {
  return std::shared_ptr<const T>(object.release(), [](const T* last) { release_later(std::shared_ptr<const T>(last)); });
}

}  // namespace tapedeck::viewer
