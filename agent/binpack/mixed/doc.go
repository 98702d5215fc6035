// Package mixed is vector bin packing into bins of several types at the least cost: the
// machines of all node groups together.
//
// It is column generation (Gilmore and Gomory, "A linear programming approach to the
// cutting-stock problem", Operations Research 9, 1961) with a cost for every type of bin:
// the master problem is a linear program whose columns are contents of one bin, a knapsack
// search finds the column that helps most, and a diving heuristic rounds. Simple rules give
// a warm start. Work is counted in steps and not in time, so that equal problems have equal answers on any machine.
//
// Layer 1, above agent/binpack. It refuses open bins, to know what an item or a bin stands
// for, and to prove that its answer is the best.
package mixed
