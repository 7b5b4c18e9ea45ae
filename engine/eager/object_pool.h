// Free lists of fixed-size objects, one per thread: two pointer moves instead of a malloc. Objects may be freed on another
// thread than they were made on; they then serve that one. Off under the sanitizers, so that they see every object's life.
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
  // Without a destructor, so that using it needs no initialisation check; Owner empties it at the thread's end.
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
