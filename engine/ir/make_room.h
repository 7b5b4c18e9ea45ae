// Room in a vector before it grows. A function that appends to several lists first makes room in all of them: then the appends
// take no memory and cannot fail halfway.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tapedeck {

// Makes room for n more entries. The capacity at least doubles when it grows, so many calls cost O(1) for each entry. Throws
// std::bad_alloc; the list is then as before.
template <class T>
void make_room(std::vector<T>& list, std::size_t n) {
  if (list.capacity() - list.size() < n) list.reserve(std::max({2 * list.capacity(), list.size() + n, std::size_t{8}}));
}

}  // namespace tapedeck
