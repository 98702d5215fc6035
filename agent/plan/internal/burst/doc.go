// Package burst lets the later pods of a burst wait for each other, so that one more order of
// machines serves all of them.
//
// Hold marks the demands that wait, with the reason. Layer 1. It refuses to hold the first
// order of a burst, fewer pods than make a burst, and pods that an order has counted on, unless
// later pods run on its machines and none of these is missing.
package burst
