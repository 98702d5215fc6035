// Package binpack is vector bin packing: items with a size in every dimension and a count
// go into open bins first and into as few fresh bins of one size as possible. Package mixed
// below it packs into bins of several types.
//
// Pack is first-fit decreasing by several orders (Panigrahy et al., "Heuristics for Vector
// Bin Packing", 2011), bin completion by branch and bound (Korf, AAAI 2002), and column
// generation with a diving heuristic (Gilmore and Gomory, "A linear programming approach
// to the cutting-stock problem", Operations Research 9, 1961). It stops where the lower
// bound is reached. Work is counted in steps and not in
// time, so that equal problems have equal answers on any machine.
//
// Dimensions 0, 1 and 3 are cpu, memory and the number of items: orders and values use
// them. Layer 1. It refuses to know what an item or a bin stands for, why an item may go
// into a bin, and what a bin is called; it imports the standard library only.
package binpack
