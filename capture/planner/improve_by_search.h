// The strategies that improve on the choices of others (StrategyEntry::improve). A search takes longer than a greedy choice, so
// it runs only in the orders of nodes in which the greedy choices cost least: for the floor at unit costs, for budgets at real
// costs. In each of these orders it runs twice: first from the choices of greedy, then from those of the other strategies.
#pragma once

namespace tapedeck {

struct Planning;

// REQUIRES: every order has its candidates.
void improve_by_search(Planning* planning);

}  // namespace tapedeck
