// Package text prints explanations for people: the summary first, then the facts, then the
// rules in their order. Explanation, CSR and Instance are its entries; Wrap breaks long lines
// where the output is a terminal.
//
// It refuses to explain: every word about a cluster comes from the explanation it is given.
package text
