// A knapsack whose items need others: to run a node again, its operands must be there. An operand that is not there yet must
// either be kept, which takes bytes, or be made again, which costs its maker, and the operands of the maker in turn.
//
//     %h = conv(%x)        %r frees 100 bytes and is cheap. But %n, which nobody else needs later, is then kept (100 bytes,
//     %n = norm(%h)        nothing is won) or made again: the price of %r is the cost of relu and of norm.
//     %r = relu(%n)
//
// The bound is that of Lagrange: a byte beyond the room has a price, and every choice that is made pays for its bytes. For each
// price of a byte the cheapest choices are found one by one, and what they cost together, less the price of the room, is at
// most the least cost of all choices that fit. The best price is looked for; every price gives a bound. Where several nodes
// need one operand, each of them is charged an equal part of it, and a maker of several results charges an equal part of
// its price for each, so that nothing is paid twice.
#pragma once

#include <cstdint>
#include <vector>

namespace tapedeck {

class ChargedKnapsack {
 public:
  static constexpr std::int32_t kKeptOnly = -1;  // a maker that cannot run again

  void clear();

  // Nodes are numbered from 0 in the order of adding. `given`: the bytes that running it again frees; 0: none.
  void add_node(double cost, std::int64_t given);
  // An operand of the node added last, which is not there by itself. `maker`: a number of an earlier node. `maker_part`: the
  // part of the maker's price that this result carries; `reader_part`: the part of the operand that this reader carries.
  void add_operand(std::int32_t maker, std::int64_t bytes, double maker_part, double reader_part);

  // A lower bound on the cost of making `excess` bytes free. `guess`: a price of a byte near which to look.
  double least_cost(std::int64_t excess, double guess);

 private:
  struct Operand {
    std::int32_t maker;
    double bytes, maker_part, reader_part;
  };
  struct Node {
    double cost, given;
    std::size_t first_operand;
  };

  double bound_at(double byte_price, double excess);

  std::vector<Node> nodes_;
  std::vector<Operand> operands_;
  std::vector<double> price_;  // by node, at the last price of a byte
};

}  // namespace tapedeck
