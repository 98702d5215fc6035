// Package nodestart says what of a node that has just joined is passing.
//
// A machine that has just joined is not yet what its group's machines are: a network plugin takes
// its taint off, feature discovery sets labels, a device plugin reports its devices, a CSI driver
// registers with its limit. The group's template says what machines of the group have when all of
// that is over (observe/template learns it from nodes that have started). What a young node has
// beside it, or lacks of it, is passing, whatever its name: until then the node counts as a machine
// that is coming, with what the template promises. Otherwise each machine that joins buys another
// one for the pods that wait for it.
//
// What no pod can be kept off a node by is left out (Needs).
//
// It refuses to know which node is young, and to decide anything by the name of a taint, a label or a
// resource that an operator has not named and Kubernetes has not defined.
package nodestart
