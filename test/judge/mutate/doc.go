// Package mutate asks of a product package: would its own tests notice if one check
// were gone? It takes the package's source, breaks one condition at a time, and runs
// the package's tests, which have to fail.
//
// All mutants are compiled into one test binary, each behind a number that the
// environment picks, so that hundreds of them cost one build and one short run each.
//
// It refuses to touch the checkout: the changed source goes to the compiler through
// go build's -overlay. It refuses to count a survivor as caught: what no test can
// notice because it changes nothing is listed with its reason (equivalent.go).
package mutate
