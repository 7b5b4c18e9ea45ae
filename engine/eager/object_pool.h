// Free lists for objects of a fixed size, one list per thread and type. To take an object costs two moves of a pointer and no
// malloc. An object may be freed on another thread than the one that took it; it then joins the list of that thread. Under
// the sanitizers the lists are off, so that the sanitizers see when each object lives.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace tapedeck::detail {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kPoolObjects = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kPoolObjects = false;
#else
inline constexpr bool kPoolObjects = true;
#endif
#else
inline constexpr bool kPoolObjects = true;
#endif

template <class T>
class Pool {
 public:
  static void* take() {
    if (kPoolObjects && list_.head) return std::exchange(list_.head, list_.head->next);
    return fresh();
  }
  static void give(void* p) noexcept {
    if (!kPoolObjects || !list_.open) return ::operator delete(p);
    auto* f = static_cast<Link*>(p);
    f->next = std::exchange(list_.head, f);
  }

 private:
  struct Link {
    Link* next;
  };
  // The list has no destructor, so that using it needs no check for initialisation. Owner frees its objects when the thread
  // ends.
  struct List {
    Link* head;
    bool open;
  };
  struct Owner {
    Owner() { list_.open = true; }
    ~Owner() {
      list_.open = false;
      while (list_.head) ::operator delete(std::exchange(list_.head, list_.head->next));
    }
  };
  static void* fresh() {
    static thread_local Owner owner;
    (void)owner;
    return ::operator new(sizeof(T) < sizeof(Link) ? sizeof(Link) : sizeof(T));
  }
  static constinit thread_local List list_;
};

template <class T>
constinit thread_local typename Pool<T>::List Pool<T>::list_ = {nullptr, false};

}  // namespace tapedeck::detail
