// Package growth answers one question: how many machines may a node group still add, by which
// rule, and in which words.
//
// KeepsTotals is the other side: which minimum of the cluster a removal would go below. // Judge asks the holds of a group once a round: a group that is held cannot be grown at all.
// Of counts what the limits leave: the group's maximum and the totals of the
// cluster. Reasons lists everything at once for explain. A new reason to hold a group is a row
// of holds; a new limit is a line of count or of totals. Layer 1. It refuses to
// choose a group and to count what a pod needs: that is scale-up.
package growth
