// Package template corrects the templates of node groups by what real nodes report.
//
// A template is computed from a launch template or a flavor; the machine may turn out
// smaller, without a label that a tag promises, or with a taint that no tag names. Nodes
// whose instance appeared under the template's current spec (Template.Spec) show it.
// Correct applies what they show, and keeps it as a Correction for a day: a group that is
// empty again would otherwise promise the same capacity again, and buy and delete a
// machine for the same pod without end.
//
// Correct is a function of its arguments. The package refuses I/O and the clock, refuses
// evidence from nodes of another spec, and refuses to promise more than every node of
// the group has.
package template
