// Package binpack has the arithmetic of room: how often a size fits into a room, what is left then, and what cpu and memory are worth
// beside each other. Sizes and rooms are vectors over the dimensions of package fit.
//
// Layer 1. It refuses to place anything: that is done on one board (package purchase). It imports the standard library only.
package binpack
