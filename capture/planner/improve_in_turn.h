// Order and recomputation improve each other. The candidate that keeps the fewest bytes alive gets an order of its own, clones
// included. In that order, of the nodes that are no clones, there may be more to give up:
//
//     order 1 --> candidates --> the least, its nodes moved --> order 2 --> candidates --> ... as long as it wins
//
// The search does not know the budget, so a larger budget never costs more. For the floor it does not know candidates that were
// found at real costs, so the floor does not depend on the source of the microseconds. It looks only at the candidates of
// strategies that every plan asks (Candidate::rates_orders).
#pragma once

namespace tapedeck {

struct Planning;

// Appends the orders and the candidates that are found. REQUIRES: every order has its candidates.
void improve_in_turn(Planning* planning);

}  // namespace tapedeck
